"""Which hosts belong to the fleet, and so may see its trace context.

A host is judged by its text alone, never by a look-up. `GYMLOG_PROPAGATE_TO` adds to the defaults
and takes away from them; a host's answer is kept, so it costs one dictionary look-up.
"""

import functools
import os
import socket
from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, NamedTuple

from gymlog.notices import notice

__all__ = ["VARIABLE", "Destinations", "from_environment"]

VARIABLE: Final = "GYMLOG_PROPAGATE_TO"

_MAX_KEPT: Final = 4_096

_INTERNAL_NETWORKS: Final = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/32",  # reaches this host
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::/127",  # unspecified and loopback
        "fc00::/7",
        "fe80::/10",
    )
)
_INTERNAL_SUFFIXES: Final = (".internal", ".local", ".localhost", ".svc")


class _Rule(NamedTuple):
    """One entry of the setting."""

    is_added: bool
    host: str
    """A name, or `.suffix`, or "" for any host."""
    network: IPv4Network | IPv6Network | None

    def matches(self, host: str, address: IPv4Address | IPv6Address | None) -> bool:
        if self.network is not None:
            return address is not None and address in self.network
        return host.endswith(self.host) if self.host[:1] in ("", ".") else host == self.host


class Destinations:
    """The hosts to propagate to: `host in destinations`.

    The spec is a comma list. `model.example` is that host, `.example` or `*.example` every host
    below it, `10.1.0.0/16` a network, `*` every host; `-` or `!` in front takes away instead of
    adding. Of several entries that match a host the last one decides; if none does, loopback,
    private and link-local addresses, names without a dot, names under `.local`, `.internal` and
    `.svc`, and this machine's own name are in. What cannot be read is reported and left out.
    """

    __slots__ = ("_kept", "_own_name", "_rules")

    def __init__(self, spec: str = "") -> None:
        self._rules = tuple(reversed(list(_rules(spec))))
        self._own_name = _normalised(socket.gethostname())
        self._kept: dict[str, bool] = {}

    def __contains__(self, host: str) -> bool:
        is_internal = self._kept.get(host)
        if is_internal is None:
            is_internal = self._judge(_normalised(host))
            if len(self._kept) < _MAX_KEPT:
                self._kept[host] = is_internal
        return is_internal

    def _judge(self, host: str) -> bool:
        address = _address(host)
        for rule in self._rules:
            if rule.matches(host, address):
                return rule.is_added
        if address is not None:
            return any(address in network for network in _INTERNAL_NETWORKS)
        if "." not in host:
            # The resolver takes plain numbers for addresses, anywhere in the world.
            return host != "" and not host[0].isdigit()
        return host.endswith(_INTERNAL_SUFFIXES) or host == self._own_name


@functools.cache
def from_environment() -> Destinations:
    """Return what `GYMLOG_PROPAGATE_TO` says; it is read once per process."""
    return Destinations(os.environ.get(VARIABLE, ""))


def _rules(spec: str) -> Iterable[_Rule]:
    for entry in spec.split(","):
        text = entry.strip().lower()
        if not text:
            continue
        is_added = text[0] not in "-!"
        host = _normalised(text if is_added else text[1:].strip())
        if host == "*":
            yield _Rule(is_added, "", None)
            continue
        host = host.removeprefix("*") if host.startswith("*.") else host
        try:
            yield _Rule(is_added, host, ip_network(host, strict=False))
            continue
        except ValueError:
            if _is_name(host):
                yield _Rule(is_added, host, None)
                continue
        notice(
            f"{VARIABLE} {text}",
            f"{VARIABLE}: {entry.strip()!r} is no host; ignored. An entry is a host name, .suffix, "
            "address, network such as 10.0.0.0/8, or *; - in front takes it away",
        )


def _is_name(host: str) -> bool:
    labels = host.removeprefix(".").split(".")
    return all(label and label.replace("-", "").replace("_", "").isalnum() for label in labels)


def _normalised(host: str) -> str:
    return host.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host.partition("%")[0])  # the zone after % is this machine's affair
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address

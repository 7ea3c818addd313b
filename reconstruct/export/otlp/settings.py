"""Where each signal goes and how: options first, then the OTEL_EXPORTER_OTLP_* variables.

Source: OpenTelemetry's specification of the OTLP exporter. A variable of a signal comes before the
one for all. The endpoint for all is a base, to which /v1/traces and so on are added; that of a
signal is the URL as it stands. Headers are percent-decoded; timeouts in variables are milliseconds,
0 for none. An empty variable counts as not set.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import unquote, urlsplit

from reconstruct.errors import UsageError

__all__ = ["PROTOCOLS", "SIGNALS", "Options", "Protocol", "Signal", "Target", "header_pairs"]

Signal = Literal["traces", "logs", "metrics"]
Protocol = Literal["grpc", "http/protobuf", "http/json"]
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)
PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)

_COMPRESSIONS: Final = ("none", "gzip", "deflate")
_TIMEOUT_SECONDS: Final = 10.0
_PREFIX: Final = "OTEL_EXPORTER_OTLP_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for on the command line; None leaves it to the variables."""

    endpoint: str | None = None
    protocol: Protocol | None = None
    headers: Mapping[str, str] | None = None
    insecure: bool | None = None
    timeout: float | None = None
    compression: str | None = None
    certificate: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one signal goes. For grpc the `url` is gRPC's target, `host:port`."""

    signal: Signal
    protocol: Protocol
    url: str
    is_plain: bool
    """Without TLS."""
    headers: Mapping[str, str] = field(repr=False)
    """Lower-case names; values may be secrets."""
    compression: str
    timeout: float
    """Seconds for a batch, further tries included."""
    certificate: str | None
    client_certificate: str | None
    client_key: str | None

    @property
    def words(self) -> str:
        """The destination for people; a password in the URL is left out."""
        if self.protocol == "grpc":
            return f"{self.url} ({'gRPC' if self.is_plain else 'gRPC with TLS'})"
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @classmethod
    def of(cls, signal: Signal, options: Options, environ: Mapping[str, str]) -> "Target":
        """Work out a signal's target; raises `UsageError` for what makes no sense."""
        variables = _Variables(signal, environ)
        protocol = options.protocol or variables.value("PROTOCOL") or "http/protobuf"
        if protocol not in PROTOCOLS:
            raise UsageError(
                f"{variables.name('PROTOCOL')}: protocol '{protocol}' is not spoken here; use "
                f"{', '.join(PROTOCOLS)}"
            )
        insecure = options.insecure
        if insecure is None:
            insecure = (variables.value("INSECURE") or "").lower() == "true"
        url = _url(signal, protocol, options, variables)
        plain = url.startswith(("http://", "unix:")) if "://" in url else insecure
        if protocol == "grpc":
            url = _grpc_target(url)
        headers = options.headers
        if headers is None:
            headers = header_pairs(variables.value("HEADERS") or "", variables.name("HEADERS"))
        compression = options.compression or variables.value("COMPRESSION") or "none"
        if compression not in _COMPRESSIONS:
            raise UsageError(
                f"{variables.name('COMPRESSION')}: no compression '{compression}'; use "
                f"{', '.join(_COMPRESSIONS)}"
            )
        return cls(
            signal=signal,
            protocol=protocol,
            url=url,
            is_plain=plain,
            headers=headers,
            compression=compression,
            timeout=_timeout(options, variables),
            certificate=options.certificate or variables.value("CERTIFICATE"),
            client_certificate=options.client_certificate or variables.value("CLIENT_CERTIFICATE"),
            client_key=options.client_key or variables.value("CLIENT_KEY"),
        )


class _Variables:
    """The variables that count for a signal."""

    def __init__(self, signal: Signal, environ: Mapping[str, str]) -> None:
        self._own = f"{_PREFIX}{signal.upper()}_"
        self._environ = environ

    def own(self, name: str) -> str | None:
        return self._environ.get(self._own + name, "").strip() or None

    def shared(self, name: str) -> str | None:
        return self._environ.get(_PREFIX + name, "").strip() or None

    def value(self, name: str) -> str | None:
        return self.own(name) or self.shared(name)

    def name(self, name: str) -> str:
        return (self._own if self.own(name) else _PREFIX) + name


def header_pairs(text: str, where: str) -> dict[str, str]:
    """Read `key=value,key=value`, as W3C Baggage has it; names become lower-case.

    Raises `UsageError` naming `where` the text is from.
    """
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(key.strip() and equals for key, equals, _ in pairs):
        raise UsageError(f"{where}: write KEY=VALUE, several with commas between them")
    return {unquote(key.strip()).lower(): unquote(value.strip()) for key, _, value in pairs}


def _url(signal: Signal, protocol: str, options: Options, variables: _Variables) -> str:
    """Find the endpoint; over HTTP it is the whole URL."""
    if protocol == "grpc":
        found = options.endpoint or variables.value("ENDPOINT") or "http://localhost:4317"
        return found.rstrip("/")
    if options.endpoint:
        base = options.endpoint if "://" in options.endpoint else f"http://{options.endpoint}"
        return _checked(_with_path(base, signal), "--endpoint")
    if own := variables.own("ENDPOINT"):
        return _checked(own, variables.name("ENDPOINT"))
    base = variables.shared("ENDPOINT") or "http://localhost:4318"
    return _checked(_joined(base, signal), variables.name("ENDPOINT"))


def _with_path(url: str, signal: Signal) -> str:
    """Complete the URL of the option: where it names a signal's path already, that is replaced."""
    for other in SIGNALS:
        if urlsplit(url).path.endswith(f"/v1/{other}"):
            parts = urlsplit(url)
            url = parts._replace(path=parts.path.removesuffix(f"/v1/{other}")).geturl()
    return _joined(url, signal)


def _joined(url: str, signal: Signal) -> str:
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/v1/{signal}").geturl()


def _checked(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none
        is_sound = False
    if not is_sound:
        raise UsageError(f"{where}: '{url}' is no URL; write http://host:4318")
    return url


def _grpc_target(url: str) -> str:
    if "://" not in url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        return url  # dns:, unix: and so on are gRPC's own
    try:
        if not parts.hostname or parts.port == 0:
            raise ValueError
        default = "" if parts.port else (":443" if parts.scheme == "https" else ":80")
    except ValueError:
        raise UsageError(f"'{url}' is no endpoint; write http://host:4317") from None
    return parts.netloc.rpartition("@")[2] + default


def _timeout(options: Options, variables: _Variables) -> float:
    if options.timeout is not None:
        return options.timeout
    text = variables.value("TIMEOUT")
    if text is None:
        return _TIMEOUT_SECONDS
    try:
        milliseconds = float(text)
        if not 0 <= milliseconds < math.inf:
            raise ValueError
    except ValueError:
        raise UsageError(f"{variables.name('TIMEOUT')}: '{text}' is no number of ms") from None
    return milliseconds / 1_000 or math.inf

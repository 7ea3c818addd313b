"""What a process started in this environment would do, each value with the variable that sets it.

`gymlog config` prints it; a server that starts on a terminal says it in one sentence. Secrets are
never part of it. A sentence about telemetry that is off loads nothing beyond the standard library.
"""

import os
import stat
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gymlog.redaction import scrub_url
from gymlog.semconv import RUN_ID, SERVICE_NAME
from gymlog.settings import FIELDS, SDK_DISABLED, SETTINGS, Ignored, Setting
from gymlog.span_groups import open_now

__all__ = ["DEFAULT_SOURCE", "Explained", "Explanation", "explain", "self_report"]

DEFAULT_SOURCE: Final = "default"
"""The source of a value that no variable sets."""


class Explained(NamedTuple):
    """One setting, its value in this environment, and where that comes from."""

    name: str
    """The variable that counts first."""
    value: object
    """Bool, number, text, list of texts or None; of a secret only the names in it."""
    source: str
    """The variable that sets it, or `default`."""
    meaning: str
    ignored: list[Ignored]
    """Its variables whose values are not accepted."""

    def text(self) -> str:
        """Return the value as a person reads it."""
        if self.value is None or self.value in ("", []):
            return "-"
        if isinstance(self.value, bool):
            return "on" if self.value else "off"
        if isinstance(self.value, list):
            return ",".join(self.value)
        return f"{self.value:.12g}" if isinstance(self.value, float) else str(self.value)


class Explanation(NamedTuple):
    """The effective configuration of a process."""

    is_on: bool
    why: str
    span_groups: list[str]
    """What the spec opens, once telemetry is on and spans are written."""
    sampler: str
    service_name: str
    """Of a server; `{server}` stands for its name."""
    run_id: str | None
    """None: the process that starts the servers makes one, or takes SLURM_JOB_ID's."""
    settings: list[Explained]

    def as_json(self) -> dict[str, object]:
        """Return all of it as JSON values."""
        settings = [
            one._asdict() | {"ignored": [ignored._asdict() for ignored in one.ignored]}
            for one in self.settings
        ]
        return self._asdict() | {"settings": settings}

    def as_text(self) -> str:
        """Return it as lines: what it comes to, each setting, what was ignored."""
        groups = ", ".join(self.span_groups) or "none"
        lines = _aligned(
            [
                ("telemetry", f"{'on' if self.is_on else 'off'}: {self.why}"),
                ("span groups", groups if self.is_on else f"{groups} (none while it is off)"),
                ("sampler", self.sampler),
                ("service name", self.service_name),
                ("run id", self.run_id or "- (made by the process that starts the servers)"),
            ]
        )
        rows = [(one.name, one.text(), one.source) for one in self.settings]
        lines += ["", *_aligned([("setting", "value", "source"), *rows])]
        ignored = {one: None for row in self.settings for one in row.ignored}
        if ignored:
            lines += ["", "ignored, for it is not accepted:"]
            lines += [f"  {name}={text!r}; accepted: {takes}" for name, text, takes in ignored]
        return "\n".join(lines)


def explain(environ: Mapping[str, str]) -> Explanation:
    """Return the effective configuration; a server's notices about it go to stderr."""
    from gymlog.destinations import VARIABLE, Destinations
    from gymlog.span_groups import GymSpanGroup, tell_unknown

    rows = {setting.name: _explained(setting, environ) for setting in SETTINGS}

    def of(field: str) -> Any:  # Any: of whichever type the field has
        return rows[FIELDS[field].name].value

    tell_unknown(of("span_groups"))
    Destinations(environ.get(VARIABLE, ""))  # tells of the entries that are no hosts
    sampler = str(rows["OTEL_TRACES_SAMPLER"].value)
    if sampler.endswith("traceidratio"):
        sampler += f", ratio {rows['OTEL_TRACES_SAMPLER_ARG'].text()}"
    is_on, why = _switch(environ)
    service_name = of("service_name")
    return Explanation(
        is_on=is_on,
        why=why,
        span_groups=sorted(GymSpanGroup.resolve(of("span_groups"))) if of("traces_enabled") else [],
        sampler=sampler,
        service_name=f"{service_name}/{{server}}"
        if of("service_name_per_server")
        else service_name,
        run_id=of("run_id"),
        settings=list(rows.values()),
    )


def self_report(resource: Mapping[str, object] | None, fd: int = 1) -> str:
    """Return the sentence of a process that has started; `resource` is None when it is off.

    `fd` is where its lines go.
    """
    is_on, why = _switch(os.environ)
    if resource is None or not is_on:
        return f"telemetry is off: {why}"
    groups = ", ".join(sorted(open_now())) or "none"
    exporter = FIELDS["exporter"].value().split(",")
    where = f"lines go to {_kind_of(fd)}"
    if "console" not in exporter:
        where = f"process {where}, the other records to OTLP"
    elif "otlp" in exporter:
        where += ", records to OTLP too"
    return (
        f"telemetry is on: {why}; span groups {groups}; {where}; "
        f"run id {resource.get(RUN_ID, '-')}; service name {resource.get(SERVICE_NAME)}"
    )


def _switch(environ: Mapping[str, str]) -> tuple[bool, str]:
    """Say whether telemetry is on, and which variable decides."""
    found = FIELDS["enabled"].find(environ)
    if found is None:
        return False, f"none of {', '.join(FIELDS['enabled'].variables)} says on"
    is_enabled, variable = found
    if is_enabled and SDK_DISABLED.value(environ):
        variable, is_enabled = SDK_DISABLED.name, False
    return is_enabled, f"{variable}={environ[variable].strip()}"


def _explained(setting: Setting[Any], environ: Mapping[str, str]) -> Explained:
    from gymlog.config import find_field

    field = next((name for name, one in FIELDS.items() if one is setting), None)
    found = find_field(field, environ) if field else setting.find(environ)
    value, source = (setting.default, DEFAULT_SOURCE) if found is None else found
    return Explained(
        setting.name,
        _shown(setting, value),
        source,
        setting.meaning,
        setting.ignored(environ),
    )


def _shown(setting: Setting[Any], value: object) -> object:
    """Return a value fit to be shown: JSON's types, no secret."""
    if isinstance(value, str) and setting.is_secret:
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        # Where no name is given, the whole may be the secret.
        return [f"{name.strip() if equals else '?'}=…" for name, equals, _ in pairs]
    if isinstance(value, frozenset):
        return sorted(value)
    return scrub_url(value) if isinstance(value, str) and "://" in value else value


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows as lines with their columns below each other; cells stay on their line."""
    rows = [tuple(map(_printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _printable(text: str) -> str:
    """Return `text` with what no terminal should get (what is not UTF-8, too) as escapes."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _kind_of(fd: int) -> str:
    """Say what a file descriptor writes to."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return f"nowhere, for fd {fd} is closed"
    if os.isatty(fd):
        return "the terminal"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - /proc's links name, they do not lead
    except OSError:
        return "a file"

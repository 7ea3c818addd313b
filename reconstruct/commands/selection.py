"""Which spans, traces and rollouts a person asked for, as SQL conditions with parameters.

What was going on between two times counts, also when it began before or ended after them. A trace
or rollout is chosen whole when it lasted then, and some span of it is what else was asked for. A
time without a zone is UTC; `10m` is that long before the last line of the logs, so that yesterday's
logs read like today's.
"""

import difflib
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.errors import UsageError

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["Chosen", "Selection", "instant_of", "selection_options"]

Function = Callable[..., Any]  # Any: click calls commands with what their options say

_LENGTH: Final = re.compile(r"-?(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d|w)")
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MINUTE: Final = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Conditions for three relations; each uses all of `parameters`."""

    parameters: dict[str, object] = field(default_factory=dict)
    _spans: tuple[str, ...] = ()
    _traces: tuple[str, ...] = ()
    _rollouts: tuple[str, ...] = ()

    @property
    def spans(self) -> str:
        """Of the relation `spans`, which the query names `span`."""
        return " AND ".join(self._spans) or "TRUE"

    @property
    def traces(self) -> str:
        """Of the relation `traces`, which the query names `trace`."""
        return " AND ".join(self._traces) or "TRUE"

    @property
    def rollouts(self) -> str:
        """Of the relation `rollouts`, which the query names `rollout`."""
        return " AND ".join(self._rollouts) or "TRUE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the shared options came to, as they were typed."""

    since: str | None = None
    until: str | None = None
    trace_id: str | None = None
    rollout_id: str | None = None
    service: str | None = None
    run_id: str | None = None

    def run_of(self, named: str) -> str | None:
        """Return the run, for a command that is about what was `named`: nothing else chooses there.

        Raises `UsageError` when another option of these is given.
        """
        if self != Selection(run_id=self.run_id):
            raise UsageError(f"{named} chosen already; of the options that choose, take --run")
        return self.run_id

    def of(self, engine: "Engine") -> Chosen:
        """Look up what the words mean in these logs.

        Raises `UsageError` for a time or service that means nothing, `ReconstructError` for an id
        that nothing has.
        """
        from reconstruct.commands.ids import trace_id_of, unknown

        since = instant_of(engine, "--since", self.since)
        until = instant_of(engine, "--until", self.until)
        if since is not None and until is not None and until <= since:
            raise UsageError(f"--until {self.until} is not after --since {self.since}")
        times: dict[str, object] = {"since": since, "until": until}
        chosen = {name: time for name, time in times.items() if time is not None}
        if self.run_id is not None:
            chosen["run_id"] = self.run_id
        if self.trace_id is not None:
            chosen["trace_id"] = trace_id_of(engine, self.trace_id, self.run_id)
        if self.rollout_id is not None:
            if not _has_rollout(engine, self.rollout_id, self.run_id):
                raise unknown(engine, self.rollout_id, self.run_id)
            chosen["rollout_id"] = self.rollout_id
        if self.service is not None:
            chosen["service"] = _service(engine, self.service)
        return Chosen(
            chosen,
            *(
                tuple(conditions[name] for name in chosen)
                for conditions in (_SPANS, _TRACES, _ROLLOUTS)
            ),
        )


_SPANS: Final = {
    "since": """
        coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns) >= $since
    """,
    "until": "span.start_time_unix_nano < $until",
    "run_id": "span.run_id = $run_id",
    "trace_id": "span.trace_id = $trace_id",
    "rollout_id": """
        span.trace_id IN (SELECT trace_id FROM _rollout_traces WHERE rollout_id = $rollout_id)
        AND span.rowid IN (
            SELECT node
            FROM _rollout_spans
            WHERE rollout_id = $rollout_id
                AND trace_id IN (
                    SELECT trace_id
                    FROM _rollout_traces
                    WHERE rollout_id = $rollout_id
                )
        )
    """,
    "service": "span.service_name IN (SELECT unnest($service))",
}
_TRACES: Final = {
    "since": "trace.end_time_unix_nano >= $since",
    "until": "trace.start_time_unix_nano < $until",
    "run_id": "trace.run_id = $run_id",
    "trace_id": "trace.trace_id = $trace_id",
    "rollout_id": """
        trace.trace_id IN (SELECT trace_id FROM _rollout_traces WHERE rollout_id = $rollout_id)
    """,
    "service": """
        trace.trace_id IN (
            SELECT trace_id
            FROM spans
            WHERE service_name IN (SELECT unnest($service))
        )
    """,
}
_ROLLOUTS: Final = {
    "since": "rollout.end_time_unix_nano >= $since",
    "until": "rollout.start_time_unix_nano < $until",
    "run_id": "rollout.run_id = $run_id",
    "trace_id": """
        EXISTS (
            FROM _rollout_traces AS part
            WHERE part.rollout_id = rollout.rollout_id
                AND part.run_id IS NOT DISTINCT FROM rollout.run_id
                AND part.trace_id = $trace_id
        )
    """,
    "rollout_id": "rollout.rollout_id = $rollout_id",
    "service": """
        EXISTS (
            FROM _rollout_spans AS member
            WHERE member.rollout_id = rollout.rollout_id
                AND member.run_id IS NOT DISTINCT FROM rollout.run_id
                AND member.service_name IN (SELECT unnest($service))
        )
    """,
}


def selection_options(function: Function) -> Function:
    """Give a command the shared options, as its argument `selection`."""

    @click.option("--since", metavar="TIME", help="Only what was going on at or after TIME.")
    @click.option(
        "--until",
        metavar="TIME",
        help="Only what was going on before TIME: 2026-01-31T12:00:00Z, an epoch number, or 10m "
        "(before the last line of the logs).",
    )
    @click.option("--trace", "trace_id", metavar="ID", help="Only the trace that starts with ID.")
    @click.option("--rollout", "rollout_id", metavar="ID", help="Only this rollout.")
    @click.option("--service", metavar="NAME", help="Only what has a span of this service.")
    @click.option("--run", "run_id", metavar="RUN", help="Only this run (nemo.run.id).")
    @functools.wraps(function)
    def run(
        *arguments: Any,  # Any: the command's own
        since: str | None,
        until: str | None,
        trace_id: str | None,
        rollout_id: str | None,
        service: str | None,
        run_id: str | None,
        **options: Any,  # Any: the command's own
    ) -> Any:
        selection = Selection(
            since=since,
            until=until,
            trace_id=trace_id,
            rollout_id=rollout_id,
            service=service,
            run_id=run_id,
        )
        return function(*arguments, selection=selection, **options)

    return run


def instant_of(engine: "Engine", option: str, text: str | None) -> int | None:
    """Return what an option's text means, ns since 1970; null when it is not given.

    Raises `UsageError` for what is no time.
    """
    from reconstruct.intake.times import to_unix_nano

    if text is None:
        return None
    if length := _LENGTH.fullmatch(text.strip()):
        (last,) = engine.rows("SELECT max(last_time_unix_nano) AS time FROM instances")
        return (last["time"] or 0) - int(Decimal(length[1]) * _UNITS[length[2]])
    whole = text.strip()
    if _DATE.fullmatch(whole):
        whole += "T00:00:00Z"
    elif minute := _MINUTE.fullmatch(whole):
        whole = f"{minute[1]}:00{minute[2] or ''}"
    time = to_unix_nano(whole)
    if time is None:
        raise UsageError(
            f"{option} '{text}' is no time; write 2026-01-31T12:00:00Z, an epoch number or 10m"
        )
    return time


def _has_rollout(engine: "Engine", rollout_id: str, run_id: str | None) -> bool:
    return bool(
        engine.rows(
            """
            SELECT 1
            FROM rollouts
            WHERE rollout_id = $rollout_id AND ($run_id::VARCHAR IS NULL OR run_id = $run_id)
            LIMIT 1
            """,
            {"rollout_id": rollout_id, "run_id": run_id},
        )
    )


def _service(engine: "Engine", wanted: str) -> list[str]:
    """Return the services that are meant: of this name, of a server's, or of this last part."""
    rows = engine.rows(
        "SELECT DISTINCT service_name, server_name FROM instances WHERE service_name IS NOT NULL"
    )
    exact = {row["service_name"] for row in rows if row["service_name"] == wanted}
    parts = {
        row["service_name"]
        for row in rows
        if wanted in (row["server_name"], row["service_name"].rpartition("/")[2])
    }
    if found := exact or parts:
        return sorted(found)
    names = sorted({row["service_name"].rpartition("/")[2] for row in rows})
    near = difflib.get_close_matches(wanted, names, n=3) or names[:8]
    raise UsageError(f"no service '{wanted}' in these logs; there is {', '.join(near) or 'none'}")

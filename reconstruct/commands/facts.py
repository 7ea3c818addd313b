"""What a summary says, as numbers: how much there is, what took long, what is wrong."""

from typing import Any, Final

from reconstruct.commands.lines import CLASSES
from reconstruct.commands.selection import Chosen
from reconstruct.engine import Engine
from reconstruct.findings import SEVERITIES, diagnose

__all__ = ["facts_of"]

_SLOWEST: Final = 5
_NAMES: Final = 8
_FINDINGS: Final = 3
"""So many of each are listed."""
_SUBJECTS: Final = {
    "rollout": (
        "rollout_id",
        "rollouts",
        "SELECT node, run_id, rollout_id FROM _rollout_spans",
    ),
    "trace": (
        "trace_id",
        "traces",
        """
        SELECT span.rowid AS node, trace.run_id, trace.trace_id
        FROM spans AS span
        JOIN traces AS trace ON trace.trace_id = span.trace_id
        """,
    ),
}
"""What a table of the slowest is about: its key, its relation, its spans."""


# Any: numbers, texts and lists of both
def facts_of(engine: Engine, chosen: Chosen) -> dict[str, Any]:
    """Return what `summary --json` prints: counts, the time range, the slowest, the costliest.

    Lines are counted whatever is chosen of the spans: they were read.
    """
    facts = engine.rows(
        f"""
        SELECT
            (SELECT count(*) FROM _files) AS file_count,
            (SELECT coalesce(sum(bytes), 0)::BIGINT FROM _files) AS byte_count,
            (SELECT coalesce(sum(lines), 0)::BIGINT FROM _files) AS line_count,
            count(*) AS span_count,
            (SELECT count(*) FROM traces AS trace WHERE {chosen.traces}) AS trace_count,
            (SELECT count(*) FROM rollouts AS rollout WHERE {chosen.rollouts}) AS rollout_count,
            count(DISTINCT run_id) AS run_count,
            count(DISTINCT instance) AS process_count,
            count(*) FILTER (status_code = 'ERROR') AS error_count,
            count(*) FILTER (state <> 'finished') AS open_count,
            min(start_time_unix_nano) AS start_time_unix_nano,
            max(coalesce(end_time_unix_nano, start_time_unix_nano + open_ns)) AS end_time_unix_nano
        FROM spans AS span
        WHERE {chosen.spans}
        """,
        chosen.parameters,
    )[0]
    lines = engine.rows(
        "SELECT class, sum(lines)::BIGINT AS lines FROM line_classes GROUP BY class"
    )
    found = {row["class"]: row["lines"] for row in lines}
    facts["line_classes"] = {name: found[name] for name in CLASSES if name in found}
    facts["unreadable"] = engine.rows("SELECT file, problem FROM _files WHERE problem IS NOT NULL")
    facts["services"] = engine.rows(
        f"""
        SELECT service_name, count(*) AS span_count, count(DISTINCT instance) AS process_count
        FROM spans AS span
        WHERE {chosen.spans}
        GROUP BY service_name
        ORDER BY service_name
        """,
        chosen.parameters,
    )
    facts["slowest"] = _slowest(engine, chosen, "rollout" if facts["rollout_count"] else "trace")
    facts["names"] = _names(engine, chosen)
    diagnosis = diagnose(engine, only=(chosen.traces, chosen.parameters))
    facts["findings"] = {severity: diagnosis.count(severity) for severity in SEVERITIES}
    facts["first_findings"] = [
        {
            "severity": group.example.severity,
            "code": group.example.code,
            "count": group.count,
            "place": group.example.place,
            "message": group.example.message,
            "hint": group.example.hint,
        }
        for group in diagnosis.groups[:_FINDINGS]
    ]
    return facts


# Any: as the columns
def _slowest(engine: Engine, chosen: Chosen, subject: str) -> list[dict[str, Any]]:
    """List the longest rollouts or traces, each with its services, the busiest first."""
    identity, relation, members = _SUBJECTS[subject]
    condition = chosen.rollouts if subject == "rollout" else chosen.traces
    rows = engine.rows(
        f"""
        WITH slow AS (
            SELECT *
            FROM {relation} AS {subject}
            WHERE {condition}
            ORDER BY duration_ns DESC, run_id, {identity}
            LIMIT {_SLOWEST}
        )
        SELECT
            slow.{identity},
            slow.run_id,
            slow.duration_ns,
            slow.span_count,
            slow.error_count,
            slow.open_count,
            span.service_name,
            sum(own.self_time_ns)::BIGINT AS self_time_ns
        FROM slow
        JOIN ({members}) AS member
            ON member.{identity} = slow.{identity}
            AND member.run_id IS NOT DISTINCT FROM slow.run_id
        JOIN spans AS span ON span.rowid = member.node
        LEFT JOIN _self_times AS own ON own.node = member.node
        GROUP BY ALL
        ORDER BY slow.duration_ns DESC, slow.run_id, slow.{identity}, self_time_ns DESC NULLS LAST,
            span.service_name
        """,
        chosen.parameters,
    )
    slowest: dict[tuple[str, str | None], dict[str, Any]] = {}  # Any: as the columns
    for row in rows:
        service = {name: row.pop(name) for name in ("service_name", "self_time_ns")}
        key = row[identity], row["run_id"]
        slowest.setdefault(key, {**row, "services": []})["services"].append(service)
    return list(slowest.values())


def _names(engine: Engine, chosen: Chosen) -> list[dict[str, Any]]:  # Any: as the columns
    """List the span names with the most self time, and their share of all of it."""
    return engine.rows(
        f"""
        SELECT
            span.name,
            span.service_name,
            count(*) AS span_count,
            sum(own.self_time_ns)::BIGINT AS self_time_ns,
            (sum(own.self_time_ns) / nullif(sum(sum(own.self_time_ns)) OVER (), 0))::DOUBLE AS share
        FROM spans AS span
        JOIN _self_times AS own ON own.node = span.rowid
        WHERE {chosen.spans}
        GROUP BY span.name, span.service_name
        ORDER BY self_time_ns DESC, span.name, span.service_name
        LIMIT {_NAMES}
        """,
        chosen.parameters,
    )

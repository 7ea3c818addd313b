"""What is wrong with a run, grouped for a person, and whether it counts as broken.

What a finding is, how severe, why it is there and what to do about it is decided in
`sql/findings/*.sql`; here findings of one code, severity, cause, place and run become one group.
Errors and warnings mean broken, notes do not.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconstruct.engine import Engine
from reconstruct.intake.json_text import Json, decode_encoded

__all__ = [
    "CAUSES",
    "SEVERITIES",
    "Diagnosis",
    "Finding",
    "FindingGroup",
    "diagnose",
    "findings_sql",
]

SEVERITIES: Final = ("error", "warning", "note")
"""From the most to the least severe."""

CAUSES: Final = {
    "parent_unfinished": "The parent had not ended when the logs end, or its process died.",
    "line_torn": "The line is there in pieces.",
    "lines_lost": "Lines of the process are missing.",
    "records_dropped": "The process says that it could not write all of its records.",
    "exports_dropped": "The process says that it could not send all of its records over OTLP.",
    "file_missing": "The log of the process is not among the inputs.",
    "not_initialised": "The process is there, but its telemetry was never turned on.",
    "context_not_extracted": "The call has a span, but its receiver did not get its context.",
    "egress_bypassed": "The call was made past what adds a span and the context to it.",
    "client_group_closed": "The caller's service writes no spans of calls at all.",
    "server_group_closed": "The service that was called writes no spans of requests at all.",
    "traceparent_ignored": "The request came with a trace context that was not used.",
    "context_lost_in_process": "The context was lost on the way to another thread or task.",
    "id_format": "The id is there, written in another way.",
    "invalid_id": "The id is none: all zeros, of a wrong length, no hex digits.",
    "cycle": "Spans are their own ancestors.",
    "fork_shared_ids": "Several processes gave the same id.",
    "id_reused": "One process gave an id twice.",
    "read_twice": "The same record was read from several places.",
    "not_sampled": "The caller was told not to record its span, the receiver recorded its own.",
    "clock": "Clocks differ, or one was set back.",
    "several_runs": "The inputs hold several runs.",
    "trace_in_two_runs": "Processes of one trace name different runs.",
    "process_died": "The process ended without a word.",
    "process_stopped": "The process was stopped while the span was open.",
    "still_running": "The span was open when the logs end, and its process may live.",
    "broken_format": "The writer does not keep to its format.",
    "unknown": "Nothing in the logs tells.",
}
"""Values of `findings.cause`, each with a sentence."""

_CAUSES_FIRST: Final = (
    "damaged_file",
    "process_died",
    "lost_lines",
    "deduplicated",
    "torn_lines",
    "js_console",
    "invalid_id",
    "unanswered",
    "clock_skew",
    "split_trace",
    "stuck",
    "errors",
    "slow_instance",
    "stalled_event_loop",
)
"""Codes that explain others; the others follow in the alphabet's order."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, as in the relation `findings`."""

    code: str
    severity: str
    cause: str | None
    confidence: float | None
    run_id: str | None
    trace_id: str | None
    span_id: str | None
    file: str | None
    line: int | None
    place: str
    message: str
    hint: str
    evidence: dict[str, Json] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one code, severity, cause, place and run; the first by file and line is the
    example."""

    findings: tuple[Finding, ...] = field(repr=False)

    @property
    def example(self) -> Finding:
        """The finding that stands for all."""
        return self.findings[0]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.findings)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All groups: the most severe first, what explains others before them, the larger first."""

    groups: tuple[FindingGroup, ...]

    @property
    def is_broken(self) -> bool:
        """Whether any finding is an error or a warning."""
        return any(group.example.severity != "note" for group in self.groups)

    def has_any(self, words: Collection[str]) -> bool:
        """Whether any finding is of one of these severities, codes or causes."""
        examples = (group.example for group in self.groups)
        return any(not {one.severity, one.code, one.cause}.isdisjoint(words) for one in examples)

    def count(self, severity: str) -> int:
        """Count the findings of one severity."""
        return sum(group.count for group in self.groups if group.example.severity == severity)


def diagnose(
    engine: Engine,
    run_id: str | None = None,
    *,
    only: tuple[str, Mapping[str, object]] = ("TRUE", {}),
) -> Diagnosis:
    """Collect the findings of every run, or of one and those that belong to no run.

    `only` is a condition on the relation `traces`, named `trace`, with its parameters: findings of
    other traces are left out, those of none are not.
    """
    condition, parameters = only
    rows = engine.rows(findings_sql(condition), {**parameters, "run": run_id})
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for row in rows:
        row["evidence"] = decode_encoded(row["evidence"])
        finding = Finding(**row)
        key = (finding.code, finding.severity, finding.cause, finding.place, finding.run_id)
        groups.setdefault(key, []).append(finding)
    ordered = sorted((FindingGroup(tuple(group)) for group in groups.values()), key=_rank)
    return Diagnosis(tuple(ordered))


def findings_sql(condition: str) -> str:
    """Return the query for what `diagnose` collects: of `$run`, and of traces of a condition."""
    return f"""
        SELECT
            code, severity, cause, confidence, run_id, trace_id, span_id, file, line, place,
            message, hint, evidence
        FROM findings
        WHERE ($run::VARCHAR IS NULL OR run_id IS NULL OR run_id = $run)
            AND (
                trace_id IS NULL
                OR trace_id IN (SELECT trace.trace_id FROM traces AS trace WHERE {condition})
            )
        ORDER BY file NULLS LAST, line NULLS LAST, code, message, trace_id, span_id
        """


def _rank(group: FindingGroup) -> tuple[int, int, str, int, str, str]:
    example = group.example
    code = example.code
    cause = _CAUSES_FIRST.index(code) if code in _CAUSES_FIRST else len(_CAUSES_FIRST)
    return (
        SEVERITIES.index(example.severity),
        cause,
        code,
        -group.count,
        example.place,
        example.cause or "",
    )

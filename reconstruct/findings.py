"""What is wrong with a run, grouped for a person, and whether it counts as broken.

What a finding is, how severe and what to do about it is decided in `sql/findings/*.sql`; here
findings of one code, severity, place and run become one group. Errors and warnings mean broken,
notes do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reconstruct.engine import Engine
from reconstruct.intake.json_text import Json, decode_encoded

__all__ = ["SEVERITIES", "Diagnosis", "Finding", "FindingGroup", "diagnose"]

SEVERITIES: Final = ("error", "warning", "note")
"""From the most to the least severe."""

_CAUSES_FIRST: Final = (
    "damaged_file",
    "process_died",
    "lost_lines",
    "deduplicated",
    "torn_lines",
    "js_console",
    "split_trace",
    "stuck",
    "errors",
    "slow_instance",
)
"""Codes that explain others; the others follow in the alphabet's order."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, as in the relation `findings`."""

    code: str
    severity: str
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
    """Findings of one code, severity, place and run; the first by file and line is the example."""

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
    rows = engine.rows(
        f"""
        SELECT
            code, severity, run_id, trace_id, span_id, file, line, place, message, hint, evidence
        FROM findings
        WHERE ($run::VARCHAR IS NULL OR run_id IS NULL OR run_id = $run)
            AND (
                trace_id IS NULL
                OR trace_id IN (SELECT trace.trace_id FROM traces AS trace WHERE {condition})
            )
        ORDER BY file NULLS LAST, line NULLS LAST, code, message
        """,
        {**parameters, "run": run_id},
    )
    groups: dict[tuple[str, str, str, str | None], list[Finding]] = {}
    for row in rows:
        row["evidence"] = decode_encoded(row["evidence"])
        finding = Finding(**row)
        key = (finding.code, finding.severity, finding.place, finding.run_id)
        groups.setdefault(key, []).append(finding)
    ordered = sorted((FindingGroup(tuple(group)) for group in groups.values()), key=_rank)
    return Diagnosis(tuple(ordered))


def _rank(group: FindingGroup) -> tuple[int, int, str, int, str]:
    example = group.example
    code = example.code
    cause = _CAUSES_FIRST.index(code) if code in _CAUSES_FIRST else len(_CAUSES_FIRST)
    return SEVERITIES.index(example.severity), cause, code, -group.count, example.place

"""Groups of findings, their order, and whether a run counts as broken."""

import re
from typing import Any

from reconstruct.engine import relation_sql
from reconstruct.findings import CAUSES, SEVERITIES, diagnose
from reconstruct.store.relations import finding_codes


def test_a_healthy_run_is_not_broken(logs: Any) -> None:
    """No finding, no group."""
    logs.span("root")
    with logs.engine() as engine:
        diagnosis = diagnose(engine)
    assert (diagnosis.groups, diagnosis.is_broken) == ((), False)


def test_notes_do_not_break_a_run(logs: Any) -> None:
    """A record read twice is worth a word, no more."""
    logs.span("root")
    logs.raw(logs.files["a.log"][0], "copy.log")
    with logs.engine() as engine:
        diagnosis = diagnose(engine)
    assert [group.example.code for group in diagnosis.groups] == ["duplicate_span"]
    assert not diagnosis.is_broken
    assert diagnosis.count("note") == 1


def test_what_happens_again_at_one_place_is_one_group(logs: Any) -> None:
    """The first by line is the example; errors come before warnings, causes before effects."""
    for number in range(5):
        trace = f"trace {number}"
        logs.span("fails", None, 0, 10, trace=trace, status="ERROR")
        logs.span("lonely", "gone", 20, 30, trace=trace)
    logs.skip(2)
    logs.span("last")
    with logs.engine() as engine:
        diagnosis = diagnose(engine)
    groups = [
        (group.example.severity, group.example.code, group.count) for group in diagnosis.groups
    ]
    assert groups == [("error", "lost_lines", 1), ("error", "orphan", 5), ("warning", "errors", 1)]
    assert diagnosis.groups[1].example.line == 2
    assert diagnosis.is_broken
    assert diagnosis.count("error") == 6
    assert diagnosis.groups[0].example.evidence["lost"] == 2


def test_findings_of_one_run(logs: Any) -> None:
    """Those of other runs are left out, those of none stay."""
    for run in ("one", "two"):
        logs.process("started", 0, service=run, run=run)
        logs.span("fails", service=run, trace=run, status="ERROR")
    logs.raw('{"record_type":"span","trace_id":"torn')
    with logs.engine() as engine:
        everything = diagnose(engine)
        one = diagnose(engine, "one")
    assert {group.example.run_id for group in everything.groups} == {None, "one", "two"}
    assert {group.example.run_id for group in one.groups} == {None, "one"}


def test_one_place_has_a_group_for_each_cause(logs: Any) -> None:
    """What is to be done differs, so they are told apart; any word of a finding chooses it."""
    logs.process("started", 0)
    for number in range(3):
        logs.span("child", "gone", 10, 20, trace=f"t{number}", flags=0x103 if number else 0x100)
    with logs.engine() as engine:
        diagnosis = diagnose(engine)
    groups = {group.example.cause: group.count for group in diagnosis.groups}
    assert groups["not_sampled"] == 1
    assert groups["parent_unfinished"] == 2
    assert diagnosis.has_any({"not_sampled"})
    assert diagnosis.has_any({"error"})
    assert not diagnosis.has_any({"cycle", "clock"})


def test_every_cause_in_the_sql_has_a_sentence() -> None:
    """And every sentence belongs to a cause there; severities and codes are other words."""
    sql = re.sub(r"--[^\n]*", "", relation_sql())
    views = re.findall(r"CREATE VIEW _finding_(\w+) AS(.*?);\n", sql, re.DOTALL)
    assert {name for name, _ in views} == set(finding_codes())
    used = {word for _, view in views for word in re.findall(r"'([a-z_]+)'", view)}
    assert set(CAUSES) <= used
    with_cause = re.findall(r"'([a-z_]+)'(?: END)? AS cause", sql)
    assert set(with_cause) <= set(CAUSES)
    assert set(CAUSES).isdisjoint(SEVERITIES)
    assert all(text.endswith(".") for text in CAUSES.values())

"""The live state says what the relations say, whatever the order of the lines."""

import gc
import json
import random
import re
import tempfile
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reconstruct
from reconstruct.intake import files, tables
from reconstruct.intake.reader import Reader, read
from reconstruct.intake.tables import Batches
from reconstruct.live.state import State
from reconstruct.live.traces import Span

BASE = 1_800_000_000_000_000_000
SECOND = 1_000_000_000
LATER = BASE + 10**6 * SECOND
"""Long after every line, so that a run whose last process stopped is over."""

FATES = """
WITH
run_end AS (
    SELECT run_id, max(last_time_unix_nano) AS last_time,
        arg_max(state = 'stopped', (last_time_unix_nano, state = 'stopped')) AS is_over
    FROM instances GROUP BY run_id
),
member AS (
    SELECT own.run_id, own.rollout_id, span.trace_id, span.state, span.status_code, span.name,
        span.start_time_unix_nano,
        greatest(span.start_time_unix_nano, coalesce(span.end_time_unix_nano, 0)) AS seen_until,
        NOT edge.orphan AND (edge.parent IS NULL OR upper.rollout_id IS DISTINCT FROM own.rollout_id
            OR upper.run_id IS DISTINCT FROM own.run_id) AS is_top
    FROM _rollout_spans AS own
    JOIN spans AS span ON span.rowid = own.node
    JOIN _edges AS edge ON edge.node = own.node
    LEFT JOIN _rollout_spans AS upper ON upper.node = edge.parent
),
part AS (
    SELECT run_id, rollout_id, trace_id,
        bool_or(state = 'open') AS has_open,
        bool_or(is_top) AS has_top,
        bool_or(is_top AND state <> 'finished') AS has_unfinished_top,
        max(seen_until) AS last_time
    FROM member GROUP BY run_id, rollout_id, trace_id
),
fate AS (
    SELECT part.run_id, part.rollout_id,
        bool_or(has_open OR NOT has_top AND NOT run_end.is_over
            AND run_end.last_time - part.last_time <= 60000000000) AS is_open,
        bool_or(has_unfinished_top) AS is_lost
    FROM part JOIN run_end ON run_end.run_id IS NOT DISTINCT FROM part.run_id
    GROUP BY part.run_id, part.rollout_id
)
SELECT rollouts.run_id, rollout_id, span_count, error_count, duration_ns,
    start_time_unix_nano AS start,
    CASE WHEN is_open THEN 'open' WHEN is_lost THEN 'lost' ELSE 'finished' END AS fate
FROM rollouts JOIN fate USING (rollout_id)
WHERE rollouts.run_id IS NOT DISTINCT FROM fate.run_id
"""
FAILURES = """
SELECT service_name, coalesce(attributes->>'http.route', name) AS route, count(*) AS count
FROM spans WHERE status_code = 'ERROR' GROUP BY ALL ORDER BY ALL
"""


def line(record_type, instance, **fields):
    service = f"service-{instance}"
    attributes = {"service.name": service, "service.instance.id": str(instance)}
    run = fields.pop("run", None)
    if run is not None:
        attributes["nemo.run.id"] = run
    return {"record_type": record_type, **fields, "resource": {"attributes": attributes}}


def process(instance, state, at, run="run-1", **counts):
    time = BASE + int(at * SECOND)
    return line("process", instance, state=state, time_unix_nano=time, run=run, **counts)


def span(number, parent, start, end, *, trace=1, rollout=None, instance=0, error=False, **more):
    """A span line, or a span_start where `end` is None; times in seconds."""
    attributes = dict(more.pop("attributes", {}))
    if rollout is not None:
        attributes["nemo.gym.rollout.id"] = rollout
    fields = {
        "trace_id": f"{trace:032x}",
        "span_id": f"{number:016x}",
        "parent_span_id": None if parent is None else f"{parent:016x}",
        "name": more.pop("name", f"span-{number % 3}"),
        "kind": "INTERNAL",
        "start_time_unix_nano": BASE + int(start * SECOND),
        "attributes": attributes,
    }
    if end is None:
        return line("span_start", instance, **fields)
    fields["end_time_unix_nano"] = BASE + int(end * SECOND)
    fields["status"] = {"code": "ERROR", "message": "no"} if error else {"code": "UNSET"}
    return line("span", instance, **fields)


def feed(state, records):
    """Add records as the intake reads them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.log")
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        reader = Reader(Batches())
        for _ in reader.read(files.find([str(path)])[0], goes_on=False):
            for table, rows in reader.batches.rows():
                state.add(table, rows)
    return state


def state_of(*records, **options):
    return feed(State(**options), records)


def relations(records):
    """Load the relations up to `rollouts`, over lines."""
    connection = duckdb.connect()
    sql = Path(reconstruct.__path__[0], "sql")
    names = re.findall(r"(?m)^\.read (\w+)\.sql$", (sql / "load.sql").read_text())
    names = names[: names.index("rollouts") + 1]
    for name in names:
        if name in tables.TABLES:
            connection.execute((sql / f"{name}.sql").read_text())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.log").write_text("".join(json.dumps(record) + "\n" for record in records))
        for table, batch in read(files.find([folder])):
            connection.register("batch", batch)
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM batch")
            connection.unregister("batch")
    for name in names:
        if name not in tables.TABLES and name != "_shell_intake":
            connection.execute((sql / f"{name}.sql").read_text())
    return connection


def by_sql(records):
    """What the relations say of the same lines: rollouts by fate, failures, states."""
    with relations(records) as connection:
        states = "SELECT instance, state FROM instances"
        return [rows(connection.execute(sql)) for sql in (FATES, FAILURES, states)]


def rows(cursor):
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@st.composite
def fleets(draw):
    """Lines of a few processes and traces, in any order, some of them missing."""
    pick = random.Random(draw(st.integers(0, 2**32)))
    runs = pick.choice([["run-1"], ["run-1", "run-2"], ["run-1", None]])
    records = []
    for instance in range(3):
        for at in sorted(pick.choices([0, 1, 20, 45, 130, 200], k=pick.randrange(3))):
            state = pick.choice(["started", "alive", "stopped"])
            records.append(process(instance, state, at, run=runs[instance % len(runs)]))
    number = 0
    for trace in range(1, pick.choice([2, 4])):
        known = []
        rollouts = pick.choice([[None], ["r1"], ["r1", None], ["r1", "r2", None, None]])
        for _ in range(pick.randrange(1, 9)):
            number += 1
            parent = pick.choice([*known, known[-1] if known else None, 999])
            start = pick.choice([0, 1, 5, 40, 120])
            facts = {
                "trace": trace,
                "rollout": pick.choice(rollouts),
                "instance": pick.randrange(3),
            }
            end = start + pick.choice([0, 1, 30])
            error = pick.random() < 0.2
            if pick.random() < 0.4:
                known_later = {"rollout": None} if pick.random() < 0.3 else {}
                records.append(span(number, parent, start, None, **facts | known_later))
            if pick.random() < 0.7:
                records.append(span(number, parent, start, end, error=error, **facts))
            if records and pick.random() < 0.1:
                records.append(records[-1])
            known.append(number)
    pick.shuffle(records)
    return records, pick.randrange(1, 5)


@settings(max_examples=25, deadline=None)
@given(fleets())
def test_it_is_what_the_relations_say(fleet):
    """Rollouts with their fates, counts and durations, failures and processes; snapshots between
    the lines change nothing."""
    records, looks = fleet
    state = State()
    for look in range(looks):
        feed(state, records[look::looks])
        snapshot = state.snapshot(LATER, limit=None)
    rollouts, failures, states = by_sql(records)
    assert {(it.run_id, it.rollout_id, it.start_time_unix_nano) for it in snapshot.open} == {
        (it["run_id"], it["rollout_id"], it["start"]) for it in rollouts if it["fate"] == "open"
    }
    assert {
        (it.run_id, it.rollout_id, it.span_count, it.error_count, it.duration_ns)
        for it in snapshot.slowest
    } == {
        (it["run_id"], it["rollout_id"], it["span_count"], it["error_count"], it["duration_ns"])
        for it in rollouts
        if it["fate"] == "finished"
    }
    fates = [it["fate"] for it in rollouts]
    assert (snapshot.open_count, snapshot.finished_count, snapshot.lost_count) == (
        fates.count("open"),
        fates.count("finished"),
        fates.count("lost"),
    )
    assert sorted((it.service_name, it.route, it.count) for it in snapshot.failures) == [
        tuple(it.values()) for it in failures
    ]
    assert {it.instance: it.state.replace("silent", "alive") for it in snapshot.processes} == {
        it["instance"]: it["state"] for it in states
    }


def now(seconds):
    return BASE + int(seconds * SECOND)


def test_a_rollout_is_open_until_the_span_it_began_with_has_ended():
    """1 ── 2 ── 3: children come first, and say where it is."""
    state = State()
    feed(state, [process(0, "started", 0), span(3, 2, 2, 3, rollout="r", name="model")])
    [rollout] = state.snapshot(now(4)).open
    assert (rollout.run_id, rollout.rollout_id) == ("run-1", "r")
    assert (rollout.span_name, rollout.after) == (None, "model")
    feed(
        state,
        [
            span(1, None, 0, None, rollout="r", name="rollout"),
            span(2, 1, 1, None, rollout="r", name="agent", instance=1),
        ],
    )
    [rollout] = state.snapshot(now(6)).open
    assert (rollout.span_name, rollout.service_name, rollout.after) == ("agent", "service-1", None)
    assert (rollout.span_count, rollout.open_count) == (3, 2)
    feed(state, [span(2, 1, 1, 7, rollout="r")])
    assert state.snapshot(now(7)).open_count == 1
    feed(state, [span(1, None, 0, 8, rollout="r")])
    snapshot = state.snapshot(now(9))
    assert (snapshot.open, snapshot.finished_count) == ((), 1)
    [finished] = snapshot.slowest
    assert (finished.duration_ns, finished.span_count) == (8 * SECOND, 3)
    [event] = snapshot.events
    assert (event.kind, event.facts["rollout_id"]) == ("rollout_finished", "r")
    assert (snapshot.finished_in_10_s, snapshot.finished_in_60_s) == (1, 1)
    assert state.snapshot(now(30)).finished_in_10_s == 0


def test_rollouts_of_a_run_that_is_one_trace_end_one_by_one():
    """The trace's root, which is of no rollout, has only begun."""
    state = state_of(
        span(1, None, 0, None, name="job"),
        span(2, 1, 1, 2, rollout="a"),
        span(4, 3, 1, 2, rollout="b"),
    )
    snapshot = state.snapshot(now(3))
    assert [it.rollout_id for it in snapshot.slowest] == ["a"]
    assert [it.rollout_id for it in snapshot.open] == ["b"]
    feed(state, [span(3, 1, 1, 4, rollout="b")])
    assert state.snapshot(now(5)).finished_count == 2


def test_a_rollout_whose_run_becomes_known_later_is_counted_once():
    """Here it turns out to be a part of one that is open."""
    now = BASE + 2 * SECOND
    state = state_of(
        process(1, "started", 0),
        span(2, None, 0, None, trace=2, rollout="r1", instance=1),
        span(1, None, 0, 1, rollout="r1", instance=2),
    )
    assert [it.run_id for it in state.snapshot(now).slowest] == [None]
    feed(state, [process(2, "started", 0)])
    snapshot = state.snapshot(now)
    assert [(it.run_id, it.span_count) for it in snapshot.open] == [("run-1", 2)]
    assert snapshot.slowest == ()
    assert (snapshot.finished_count, snapshot.finished_in_10_s) == (0, 0)


def test_what_ended_is_told_once():
    """A late line of a finished rollout is counted, and is no event."""
    state = state_of(span(1, None, 0, 5, rollout="r"))
    assert [event.kind for event in state.snapshot(now(6)).events] == ["rollout_finished"]
    feed(state, [span(2, 1, 1, 2, rollout="r")])
    snapshot = state.snapshot(now(7))
    assert snapshot.events == ()
    assert (snapshot.finished_count, snapshot.slowest[0].span_count) == (1, 2)


def test_a_rollout_whose_process_died_is_lost():
    """The last process of the run has stopped, another one has not said so: after a while it is
    dead, and what it has open is lost."""
    state = state_of(
        process(0, "started", 0),
        process(1, "started", 0),
        span(1, None, 1, None, rollout="r"),
        process(1, "stopped", 10),
    )
    snapshot = state.snapshot(now(11))
    assert (snapshot.open_count, snapshot.lost_count, snapshot.alive_count) == (1, 0, 1)
    snapshot = state.snapshot(now(20))
    assert (snapshot.open_count, snapshot.lost_count, snapshot.died_count) == (0, 1, 1)
    assert [event.kind for event in snapshot.events] == ["process_dead", "rollout_lost"]


def test_a_process_that_says_nothing_for_two_intervals_is_silent():
    """By the clock; a later line makes it alive again."""
    state = state_of(process(0, "alive", 0, spans_written=7, records_dropped=1, open_spans=2))
    [one] = state.snapshot(now(59)).processes
    assert (one.state, one.spans_written, one.records_dropped, one.open_spans) == ("alive", 7, 1, 2)
    [one] = state.snapshot(now(61)).processes
    assert one.state == "silent"
    feed(state, [process(0, "alive", 62)])
    snapshot = state.snapshot(now(63))
    assert [event.kind for event in snapshot.events] == ["process_alive"]


def test_the_latest_lag_of_the_event_loop_is_known():
    """Its longest, in ms."""
    point = {"type": "histogram", "count": 2, "sum": 9.0}
    state = state_of(
        *(
            line(
                "metric", 0, name="gym.event_loop.lag_ms", time_unix_nano=now(at), max=lag, **point
            )
            for at, lag in ((2, 7.5), (1, 3.0))
        )
    )
    assert state.snapshot(now(3)).processes[0].lag_ms == 7.5


def test_errors_are_counted_by_service_and_route():
    """The last one of each kind is shown; each is an event."""
    route = {"http.route": "/run"}
    state = state_of(
        span(1, None, 0, 9, error=True, attributes=route, rollout="r"),
        span(2, None, 0, 5, error=True, attributes=route),
        span(3, None, 0, 6, error=True, instance=1, name="work"),
    )
    snapshot = state.snapshot(now(10))
    assert snapshot.error_count == 3
    assert [(it.service_name, it.route, it.count) for it in snapshot.failures] == [
        ("service-0", "/run", 2),
        ("service-1", "work", 1),
    ]
    assert (snapshot.failures[0].message, snapshot.failures[0].rollout_id) == ("no", "r")
    errors = [event for event in snapshot.events if event.kind == "error"]
    assert [event.time_unix_nano for event in errors] == [now(5), now(6), now(9)]


def kept_spans():
    gc.collect()
    return sum(type(it) is Span for it in gc.get_objects())


@pytest.mark.parametrize("is_one_trace", [True, False], ids=["one trace", "a trace each"])
@pytest.mark.parametrize("rollout", ["r{}", None], ids=["rollouts", "no rollouts"])
def test_memory_is_bounded_by_what_is_open(is_one_trace, rollout):
    """2,000 spans that are over leave counts, the slowest, and the last few."""
    state = State(kept=50)
    for first in range(2, 2_000, 200):
        records = [span(1, None, 0, None)] if is_one_trace else []
        for number in range(first, first + 200, 2):
            trace = 1 if is_one_trace else number
            facts = {"trace": trace, "rollout": rollout and rollout.format(number)}
            top = 1 if is_one_trace else None
            records += [
                span(number + 1, number, number, number + 0.1, **facts),
                span(number, top, number, number + 1 + (number == 400), **facts),
            ]
        feed(state, records)
        snapshot = state.snapshot(now(first + 300))
        assert kept_spans() <= 60
    assert snapshot.span_count == 2_000
    assert snapshot.finished_count == (1_000 if rollout else 0)
    assert snapshot.open_count == 0
    if rollout:
        assert snapshot.slowest[0].rollout_id == "r400"
        assert len(snapshot.slowest) == 100


def test_a_snapshot_shows_at_most_as_much_as_it_is_asked_for():
    """Counts are of all."""
    state = state_of(*(span(n, None, n, None, trace=n, rollout=f"r{n}") for n in range(1, 9)))
    snapshot = state.snapshot(now(10), limit=3)
    assert [it.rollout_id for it in snapshot.open] == ["r1", "r2", "r3"]
    assert snapshot.open_count == 8

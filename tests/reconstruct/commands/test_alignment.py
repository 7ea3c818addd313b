"""`reconstruct show --align`: spans where they belong, and what was moved.

Without it, everything is drawn as it was written, and one line says that clocks differ.
"""

import pytest

TRACE = f"{0xC36:032x}"
START = 1_764_475_132_000_000_000
MS = 1_000_000
ALIGNED = f"""\
trace {TRACE}
2025-11-30T03:58:52.000Z   1.50 s   4 spans   2 services   no errors
aligned with node-a   node-b moved by +3.50 s ± 11.0 ms

                                        0            0.5 s        1 s
  rollout                node-a  1.00 s ███━━█████████████████████▊
  ├╴model call           node-a  100 ms ┊ ▐━━▍       ┊            ┊
  │ └╴POST /v1/responses node-b 80.0 ms ┊ ▕██▏       ┊            ┊
  └╴write results later  node-a  300 ms ┊            ┊            ┊     ████████

  █ own work   ━ in children
"""


def test_aligned_spans_stand_within_their_callers(two_hosts, run, monkeypatch):
    """What starts after its parent on the same host is right as it is."""
    monkeypatch.setenv("COLUMNS", "80")
    done = run("show", TRACE, "logs", "--align")
    assert (done.code, done.out, done.err) == (0, ALIGNED, "")


def test_without_it_times_stand_as_written(two_hosts, run):
    done = run("show", "--slowest", "logs")
    assert "aligned" not in done.out
    assert done.out.splitlines()[1].startswith("2025-11-30T03:58:48.610Z   4.89 s ")
    assert done.err == (
        "the clock of node-b was about 3.50 s behind that of node-a; --align draws spans where "
        "they belong\n"
    )


def test_json_keeps_the_times_as_written(two_hosts, run):
    """The others stand beside them, under the names that they have in aligned_spans."""
    raw = run("show", TRACE, "logs", "--json").json
    aligned = run("show", TRACE, "logs", "--align", "--json").json
    added = ("offset_ns", "start_adj_unix_nano", "end_adj_unix_nano")
    assert [{k: v for k, v in row.items() if k not in added} for row in aligned] == raw
    assert [tuple(row[name] for name in added) for row in aligned] == [
        (0, START, START + 1_000 * MS),
        (0, START + 100 * MS, START + 200 * MS),
        (-3_500 * MS, START + 110 * MS, START + 190 * MS),
        (0, START + 1_200 * MS, START + 1_500 * MS),
    ]


def test_where_clocks_agree_nothing_is_said_or_moved(logs, run):
    plain = run("show", "1-0", "logs")
    assert plain.err == ""
    aligned = run("show", "1-0", "logs", "--align")
    heading, facts, words, *rows = aligned.out.splitlines()
    assert words == "aligned: no span had to be moved"
    assert [heading, facts, *rows] == plain.out.splitlines()


def test_one_server_that_goes_on_is_no_reason_to_speak(two_hosts, run):
    """It ends 5 ms after its client; two others end before theirs."""
    line = (
        '{{"trace_id":"{trace}","span_id":"{span:016x}","parent_span_id":{parent},"name":"x",'
        '"kind":"{kind}","start_time_unix_nano":{start},"end_time_unix_nano":{end},'
        '"resource":{{"attributes":{{"service.name":"gym/x","host.name":"{host}"}}}}}}\n'
    )
    with open("logs/more.log", "a", encoding="utf-8") as file:
        for number, end in enumerate((95, 95, 105)):
            first = 16 + 2 * number
            for span, parent, kind, start_ms, end_ms, host in (
                (first, "null", "CLIENT", 0, 100, "node-a"),
                (first + 1, f'"{first:016x}"', "SERVER", 10, end, "node-c"),
            ):
                start, end_time = START + start_ms * MS, START + end_ms * MS
                facts = {"span": span, "parent": parent, "kind": kind, "host": host}
                file.write(line.format(trace="5" * 32, start=start, end=end_time, **facts))
    assert run("show", "5" * 32, "logs").err == ""


def test_children_are_in_order_of_their_aligned_starts(two_hosts, run):
    """A span of node-b, hours early by its clock, comes after its sibling of node-a."""
    with open("logs/node-b.log", "a", encoding="utf-8") as file:
        file.write(
            f'{{"trace_id":"{TRACE}","span_id":"{9:016x}","parent_span_id":"{1:016x}",'
            f'"name":"handed over","start_time_unix_nano":{START - 3_200 * MS},'
            f'"resource":{{"attributes":{{"service.name":"gym/node-b","host.name":"node-b"}}}},'
            f'"end_time_unix_nano":{START - 3_100 * MS}}}\n'
        )
    raw = run("show", TRACE, "logs", "--json").json
    aligned = run("show", TRACE, "logs", "--align", "--json").json
    assert [row["name"] for row in raw][1] == "handed over"
    assert [row["name"] for row in aligned] == [
        "rollout",
        "model call",
        "POST /v1/responses",
        "handed over",
        "write results later",
    ]


def test_answers_are_of_aligned_times(two_hosts, run):
    """The path goes through the server, whose times the logs have before those of its caller."""
    asked = ("path", TRACE, "logs", "--json")
    raw, aligned = run(*asked), run(*asked, "--align")
    assert aligned.err.splitlines() == ["aligned with node-a", "node-b moved by +3.50 s ± 11.0 ms"]
    spans = [(row["name"], row["duration_ns"]) for row in aligned.json]
    assert spans == [
        ("rollout", 100 * MS),
        ("model call", 10 * MS),
        ("POST /v1/responses", 80 * MS),
        ("model call", 10 * MS),
        ("rollout", 800 * MS),
    ]
    assert "POST /v1/responses" not in {row["name"] for row in raw.json}


@pytest.mark.parametrize("command", ["stats", "rollouts", "map", "steps", "path"])
def test_every_answer_that_compares_times_takes_it(two_hosts, run, command):
    """And says what was moved."""
    done = run(command, "logs", "--align")
    assert (done.code, done.err.splitlines()[0]) == (0, "aligned with node-a")


def test_so_does_a_query(two_hosts, run):
    """Of the same rows, at other times."""
    sql = "SELECT min(start_time_unix_nano) AS start, max(duration_ns) AS longest FROM spans"
    asked = ("query", sql, "logs", "--format", "json")
    (raw,), (aligned,) = run(*asked).json, run(*asked, "--align").json
    assert raw["start"] == START - 3_390 * MS
    assert aligned["start"] == START
    assert raw["longest"] == aligned["longest"]

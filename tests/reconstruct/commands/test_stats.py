"""`reconstruct stats`: figures of spans by any keys, and no more of them than there is room for."""

import pytest

from reconstruct.console import Console


def test_the_most_self_time_comes_first(logs, run):
    """By service and name, unless asked otherwise."""
    done = run("stats", "logs", "--json")
    assert done.code == 0, done
    assert [(row["service_name"], row["name"], row["self_time_ns"]) for row in done.json] == [
        ("gym/model", "gym.model.call", 78_000_000),
        ("gym/agent", "POST /run", 6_000_000),
        ("gym/driver", "gym.rollout", 6_000_000),
    ]
    driver = done.json[2]
    assert driver["duration_p50_ns"] == 30_000_000
    assert driver["duration_p90_ns"] == 46_000_000
    assert driver["duration_total_ns"] == 90_000_000
    assert driver["range_ns"] == 230_000_000
    assert sum(row["blame_ns"] for row in done.json) == 90_000_000


def test_a_table_in_a_pipe_is_whole(logs, run):
    done = run("stats", "logs", "--limit", "2", "--by", "name,service")
    heading, model, _ = done.out.splitlines()
    assert heading.startswith("NAME            SERVICE  SPANS    RATE  ERRORS  FAILED  UNFINISHED ")
    assert heading.endswith("P50      P90      P95      P99      MAX    TOTAL     SELF    BLAME")
    assert model.startswith("gym.model.call  model        3  13.0/s       0     0 %           0 ")
    assert model.endswith("26.0 ms  42.0 ms  44.0 ms  45.6 ms  46.0 ms  78.0 ms  78.0 ms  78.0 ms")
    assert done.err.splitlines() == [
        "rate: spans per second of 230 ms",
        "… 1 more group; --limit 0 shows all",
    ]


@pytest.mark.parametrize(("columns", "figures"), [(200, 13), (120, 10), (80, 6), (20, 6)])
def test_a_terminal_shows_as_much_as_fits(logs, run, monkeypatch, columns, figures):
    """And says what it leaves out; what is sorted by stays."""
    monkeypatch.setattr(Console, "columns", columns)
    wanted = Console.__init__

    def terminal(self, *arguments, **options):
        wanted(self, *arguments, **options)
        self.is_terminal = True

    monkeypatch.setattr(Console, "__init__", terminal)
    done = run("stats", "logs", "--sort", "p90", "--color", "never")
    heading = done.out.splitlines()[0]
    assert "P90" in heading
    assert len(heading.split()) == 2 + figures, heading
    assert columns < 80 or max(map(len, done.out.splitlines())) <= columns
    assert ("no room for" in done.err) == (figures < 13)


def test_any_keys(logs, run):
    """In their order; also attributes, whose columns bear their names."""
    logs["agent"].span(
        0xB0, 1, None, "call", 300, 310, attributes={"tool": "search", "span_count": 2}
    )
    logs["agent"].span(0xB1, 2, None, "call", 300, 310, attributes={"tool": "x"})
    rows = run("stats", "logs", "--by", "name, tool", "--sort", "spans", "--json").json
    assert [(row["name"], row["tool"]) for row in rows[-2:]] == [("call", "search"), ("call", "x")]
    assert list(rows[0])[:3] == ["name", "tool", "span_count"]
    rows = run("stats", "logs", "--by", "span_count", "--json").json
    assert {row["key_1"] for row in rows} == {None, "2"}
    rows = run("stats", "logs", "--by", "outcome,host,kind,run,server,route", "--json").json
    assert rows[0]["outcome"] == "ok"
    assert rows[0]["host_name"] == "node-1"


def test_what_cannot_be_grouped_by_is_named(logs, run):
    """Before anything is shown."""
    logs["agent"].span(0xB0, 1, None, "call", 300, 310, attributes={"tool.name": "search"})
    done = run("stats", "logs", "--by", "name,tool.nam")
    assert (done.code, done.out) == (2, "")
    assert done.err == ("error: no span here has the attribute 'tool.nam'; there is tool.name\n")
    done = run("stats", "logs", "--by", "tool.name", "--service", "driver")
    assert done.code == 2
    assert run("stats", "logs", "--by", " , ").code == 2


def test_only_what_is_chosen_counts(logs, run):
    """Rates are then per second of the time that was asked for."""
    done = run("stats", "logs", "--service", "model", "--rollout", "1-0", "--json")
    ((row,),) = (done.json,)
    assert (row["name"], row["span_count"], row["duration_max_ns"]) == (
        "gym.model.call",
        1,
        46_000_000,
    )
    since = run("stats", "logs", "--by", "kind", "--since", "800ms", "--json").json
    assert [(row["span_count"], row["range_ns"]) for row in since] == [(3, 30_000_000)]


def test_control_characters_are_harmless(logs, run):
    logs["agent"].span(0xB0, 1, None, "a\x1b[31m", 300, 310, attributes={"k\x1b": "\x07"})
    for by in ("name", "k\x1b"):
        done = run("stats", "logs", "--by", by)
        assert done.code == 0
        assert "\x1b" not in done.out
        assert "\x07" not in done.out


def test_nothing_to_count(logs, run):
    done = run("stats", "logs", "--run", "run-2")
    assert (done.code, done.out, done.err) == (0, "", "no groups\n")
    assert run("stats", "logs", "--run", "run-2", "--json").json == []

"""`reconstruct path`: whose work decided when a rollout ended, or when all of them did."""

import pytest


def test_all_rollouts_added_up(logs, run):
    """The most blamed first; all of their time is there, once."""
    rows = run("path", "logs/", "--json").json
    assert [(row["name"], row["blame_ns"], row["path_count"]) for row in rows] == [
        ("gym.model.call", 78_000_000, 3),
        ("POST /run", 6_000_000, 3),
        ("gym.rollout", 6_000_000, 3),
    ]
    assert sum(row["blame_ns"] for row in rows) == 90_000_000
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert (rows[0]["mean_ns"], rows[0]["max_ns"]) == (26_000_000, 46_000_000)


def test_sections_of_one(logs, run):
    """In order of time, with what they are."""
    done = run("path", "1-0", "logs/")
    assert done.code == 0, done
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["AT", "LENGTH", "SHARE", "SPAN", "SERVICE"]
    assert [(line[0], line[2], line[-2]) for line in lines[1:6]] == [
        ("0", "1.00", "gym.rollout"),
        ("1.00", "1.00", "/run"),
        ("2.00", "46.0", "gym.model.call"),
        ("48.0", "1.00", "/run"),
        ("49.0", "1.00", "gym.rollout"),
    ]
    assert done.out.splitlines()[-1] == "50.0 ms is all of rollout 1-0"
    sections = run("path", "1-0", "logs/", "--json").json
    assert sum(section["duration_ns"] for section in sections) == 50_000_000
    assert run("path", "--slowest", "logs/", "--json").json == sections


def test_a_trace_by_the_first_digits_of_its_id(logs, run):
    rows = run("path", f"{0xA1:032x}"[:32], "logs/", "--json").json
    assert {row["root_span_id"] for row in rows} == {rows[0]["root_span_id"]}
    assert sum(row["duration_ns"] for row in rows) == 50_000_000


def test_spans_of_one_with_drag_and_slack(write_logs, run):
    logs = write_logs()
    driver = logs["driver"]
    driver.span(1, 1, None, "gym.rollout", 0, 100, rollout="0-0")
    driver.span(1, 2, 1, "slow", 0, 90)
    driver.span(1, 3, 1, "quick", 0, 60)
    rows = run("path", "0-0", "logs/", "--spans", "--json").json
    assert [(row["name"], row["blame_ns"], row["drag_ns"], row["slack_ns"]) for row in rows] == [
        ("slow", 90_000_000, 30_000_000, 0),
        ("gym.rollout", 10_000_000, 100_000_000, 0),
        ("quick", 0, 0, 30_000_000),
    ]


def test_assumptions_are_told(write_logs, run):
    """Of work side by side, that the last to end was waited for."""
    driver = write_logs()["driver"]
    driver.span(1, 1, None, "gym.rollout", 0, 100, rollout="0-0")
    driver.span(1, 2, 1, "one", 0, 90)
    driver.span(1, 3, 1, "other", 0, 60)
    assert "assumed" in run("path", "0-0", "logs/").out
    assert run("path", "logs/", "--json").json[0]["assumed_count"] == 1


def test_work_that_outlives_its_parent(write_logs, run):
    """Cut, or followed to its end."""
    driver = write_logs()["driver"]
    driver.span(1, 1, None, "gym.rollout", 0, 100, rollout="0-0")
    driver.span(1, 2, 1, "saving", 90, 150)
    cut = run("path", "0-0", "logs/", "--json").json
    assert [(row["name"], row["duration_ns"] // 1_000_000) for row in cut] == [
        ("gym.rollout", 90),
        ("saving", 10),
        (None, 50),
    ]
    followed = run("path", "0-0", "logs/", "--outliving", "follow", "--json").json
    assert [(row["name"], row["duration_ns"] // 1_000_000) for row in followed] == [
        ("gym.rollout", 90),
        ("saving", 60),
    ]


def test_drag_and_slack_are_of_the_path_that_was_asked_for(write_logs, run):
    """Who is waited for depends on what becomes of work that ends late or runs over."""
    driver = write_logs()["driver"]
    driver.span(1, 1, None, "gym.rollout", 0, 100, rollout="0-0")
    driver.span(1, 2, 1, "saving", 80, 150)
    driver.span(1, 3, 1, "other", 0, 81)

    def told(*words):
        rows = run("path", "0-0", "logs/", "--spans", "--json", *words).json
        return {
            row["name"]: tuple(
                None if time is None else time // 1_000_000
                for time in (row["blame_ns"], row["drag_ns"], row["slack_ns"])
            )
            for row in rows
        }

    assert told() == {
        "gym.rollout": (80, 100, 0),
        "saving": (20, 19, 0),
        "other": (0, 0, 19),
    }
    assert told("--outliving", "follow") == {
        "gym.rollout": (80, 150, 0),
        "saving": (70, 69, 0),
        "other": (0, 0, 69),
    }
    assert told("--overlap", "1%") == {
        "other": (80, 80, 0),
        "saving": (20, 20, 0),
        "gym.rollout": (0, 100, 0),
    }


def test_work_that_runs_over(write_logs, run):
    """A tolerance is a share of the parent's duration."""
    driver = write_logs()["driver"]
    driver.span(1, 1, None, "gym.rollout", 0, 1000, rollout="0-0")
    driver.span(1, 2, 1, "one", 0, 501)
    driver.span(1, 3, 1, "two", 500, 1000)

    def names(*words):
        return [row["name"] for row in run("path", "0-0", "logs/", "--json", *words).json]

    assert names() == ["gym.rollout", "two"]
    assert names("--overlap", "1%") == names("--overlap", "0.01") == ["one", "two"]


def test_traces_where_there_are_no_rollouts(write_logs, run):
    driver = write_logs()["driver"]
    driver.span(1, 1, None, "work", 0, 100)
    driver.span(2, 1, None, "work", 0, 30)
    (row,) = run("path", "logs/", "--json").json
    assert (row["name"], row["path_count"], row["blame_ns"]) == ("work", 2, 130_000_000)
    (section,) = run("path", "--slowest", "logs/", "--json").json
    assert section["duration_ns"] == 100_000_000


def test_a_selection_chooses_paths(logs, run):
    rows = run("path", "logs/", "--rollout", "0-0", "--json").json
    assert sum(row["blame_ns"] for row in rows) == 10_000_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["logs/", "--spans"], "--spans is about one path: give an ID or --slowest"),
        (["0-0", "logs/", "--overlap", "much"], "'much' is no share of a duration"),
        (
            ["0-0", "logs/", "--since", "1s"],
            "'0-0' is chosen already; of the options that choose, take --run",
        ),
        (
            ["--slowest", "logs/", "--until", "1h"],
            "no span in these logs is what the options choose",
        ),
        (["0-9", "logs/"], "no rollout or trace '0-9' in these logs"),
        (["logs/", "--overlap", "120%"], "'120%' is no share of a duration"),
    ],
)
def test_what_makes_no_sense_is_told(logs, run, words, told):
    done = run("path", *words)
    assert done.code != 0
    assert told in done.err

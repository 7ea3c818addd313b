"""`reconstruct show`: the rollout or trace that an id means, as a waterfall."""

import pytest


def test_a_rollout_is_found_by_its_id(logs, run):
    done = run("show", "1-0", "logs")
    assert done.code == 0
    assert done.out.splitlines()[:3] == [
        f"rollout 1-0   trace {0xA1:032x}   run run-1",
        "2025-11-30T03:58:52.100Z   50.0 ms   3 spans   3 services   no errors",
        "",
    ]
    names = [line[2:].split()[0].lstrip("└╴") for line in done.out.splitlines()[4:7]]
    assert names == ["gym.rollout", "POST", "gym.model.call"]


@pytest.mark.parametrize("wanted", [f"{0xA2:032x}", f"0x{0xA2:032x}", f"{0xA2:032X}"])
def test_a_trace_is_found_by_its_id(wanted, logs, run):
    done = run("show", wanted, "logs")
    assert done.code == 0
    assert f"trace {0xA2:032x}" in done.out


def test_the_first_digits_of_a_trace_are_enough_when_only_one_has_them(write_logs, write, run):
    logs = write_logs()
    write(logs, 0xAB << 120, "0-0", 0, 10)
    write(logs, 0xAC << 120, "1-0", 0, 10)
    assert "rollout 0-0" in run("show", "ab", "logs").out
    done = run("show", "a", "logs")
    assert (done.code, done.out) == (2, "")
    assert done.err == (f"error: 2 traces start with 'a': {0xAB << 120:032x}, {0xAC << 120:032x}\n")


def test_an_unknown_id_names_the_nearest(logs, run):
    done = run("show", "1-1", "logs")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: no rollout or trace '1-1' in these logs; most like it: ")
    assert "1-0" in done.err


def test_logs_without_spans_say_so(tmp_path, run):
    (tmp_path / "a.log").write_text("text\n")
    assert run("show", "1-1", tmp_path).err == (
        "error: no rollout or trace '1-1': no spans in these logs\n"
    )
    assert run("show", "--slowest", tmp_path).err == "error: no spans in these logs\n"


def test_a_rollout_id_in_two_runs_asks_which(write_logs, write, run):
    for number in (1, 2):
        write(write_logs(f"logs{number}", f"run-{number}"), 0xA0 + number, "0-0", number, 10)
    done = run("show", "0-0", "logs1", "logs2")
    assert (done.code, done.out) == (2, "")
    assert "is in 2 runs; add --run: run-1 (2025-11-30T03:58:52.001Z), run-2 (" in done.err
    assert f"trace {0xA2:032x}" in run("show", "0-0", "logs1", "logs2", "--run", "run-2").out


def test_all_traces_of_a_rollout_are_shown_on_one_axis(write_logs, write, run):
    logs = write_logs()
    write(logs, 0xA1, "0-0", 0, 10)
    write(logs, 0xA2, "0-0", 90, 10)
    done = run("show", "0-0", "logs")
    assert "100 ms   2 traces   6 spans" in done.out
    assert done.out.count("gym.rollout ") == 2


def test_the_slowest_is_the_longest_rollout(logs, run):
    assert run("show", "--slowest", "logs").out.startswith("rollout 1-0 ")


def test_without_rollouts_the_slowest_is_the_longest_trace(write_logs, write, run):
    logs = write_logs()
    write(logs, 0xA1, None, 0, 10)
    write(logs, 0xA2, None, 0, 20)
    assert run("show", "--slowest", "logs").out.startswith(f"trace {0xA2:032x}")


def test_json_has_every_span_of_it_parents_first(logs, run):
    rows = run("show", "1-0", "logs", "--json").json
    assert [(row["name"], row["depth"], row["duration_ns"]) for row in rows] == [
        ("gym.rollout", 0, 50_000_000),
        ("POST /run", 1, 48_000_000),
        ("gym.model.call", 2, 46_000_000),
    ]
    assert rows[0]["attributes"] == {"nemo.gym.rollout.id": "1-0"}


def test_a_path_in_the_place_of_an_id_is_noticed(logs, run):
    done = run("show", "logs")
    assert done.code == 2
    assert "'logs' is a path; put a rollout id" in done.err


def test_an_unfinished_span_shows_until_when_it_was_seen(write_logs, run):
    logs = write_logs()
    logs["driver"].span(0xA1, 1, None, "gym.rollout", 0, None, rollout="0-0")
    logs["driver"].process("alive", 250)
    done = run("show", "0-0", "logs")
    assert "1 unfinished" in done.out
    assert "open for 250 ms when process 101 was" in done.out


def test_columns_and_limit_are_obeyed(logs, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    done = run("show", "1-0", "logs", "--limit", "2")
    assert max(map(len, done.out.splitlines())) <= 60
    assert "… 1 more span; --limit 0 shows all" in done.out

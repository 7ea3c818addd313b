"""`reconstruct repeats`: what spans did many times, one after the other."""

import pytest


@pytest.fixture
def loops(logs):
    """Two agents that ask the model twelve times in turn, the second for longer."""
    for number in range(2):
        trace, first = 0xF0 + number, 0x1000 * (number + 1)
        length = 10 + 10 * number
        logs["agent"].span(trace, first, None, "gym.agent", 0, 300)
        for call in range(12):
            start = call * 25
            logs["agent"].span(
                trace, first + 1 + call, first, "HTTP POST", start, start + length, kind="CLIENT"
            )
            logs["model"].span(
                trace, first + 100 + call, first + 1 + call, "POST /v1", start + 1, start + 9,
                kind="SERVER", attributes={"http.route": "/v1"},
            )  # fmt: skip
    return logs


def test_series_are_added_up(loops, run):
    """Over the spans of a name that made the same calls."""
    done = run("repeats", "logs", "--json")
    assert done.code == 0, done
    assert done.json == [
        {
            "parent_service_name": "gym/agent",
            "parent_name": "gym.agent",
            "service_name": "gym/agent",
            "name": "HTTP POST",
            "route": "/v1",
            "parent_count": 2,
            "call_count": 24,
            "duration_p50_ns": 15_000_000,
            "duration_total_ns": 360_000_000,
            "parent_share": pytest.approx(0.6),
            "overlap_share": 0.0,
            "trace_id": f"{0xF1:032x}",
        }
    ]


def test_a_table_says_who_made_the_calls(loops, run):
    assert run("repeats", "logs").out.splitlines() == [
        "CALL           SPANS  CALLS      P50   TOTAL  SHARE  OVERLAP",
        "HTTP POST /v1      2     24  15.0 ms  360 ms   60 %      0 %",
        "    by gym.agent in gym/agent",
        f"    longest: reconstruct show {0xF1:032x}",
    ]


def test_nothing_repeats(logs, run):
    done = run("repeats", "logs")
    assert (done.code, done.out, done.err) == (0, "", "no repetitions\n")

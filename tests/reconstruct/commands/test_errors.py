"""`reconstruct errors`: what broke, how often, in how many rollouts."""

import pytest

FAILED = {"status": {"code": "ERROR", "message": "RuntimeError: no weather"}}
"""What ends a span that failed."""


@pytest.fixture
def broken(logs, write):
    """Two rollouts in which the model failed, one of them whole; one timeout."""
    why = {**FAILED, "attributes": {"error.type": "RuntimeError"}}
    for number in range(2):
        rollout = f"9-{number}"
        trace, first = 0xF0 + number, 16 * (0xF0 + number)
        logs["model"].span(
            trace, first + 3, first + 1, "gym.model.call", 402, 408, rollout=rollout, **why
        )
        fate = FAILED if number else {}
        logs["driver"].span(
            trace, first + 1, None, "gym.rollout", 400, 410, rollout=rollout, **fate
        )
    logs["driver"].span(
        0xFF, 0xFF1, None, "gym.rollout", 500, 600, rollout="9-9",
        status={"code": "ERROR", "message": "timed out"},
    )  # fmt: skip
    logs["model"].span(0xFF, 0xFF2, 0xFF1, "gym.model.call", 510, None, rollout="9-9")
    return logs


def test_causes_are_counted(broken, run):
    """The most frequent first, each with its rollouts and the roots that failed for it."""
    done = run("errors", "logs", "--json")
    assert done.code == 0, done
    assert done.json == [
        {
            "cause_count": 2,
            "rollout_count": 2,
            "root_count": 1,
            "cause": "failed",
            "service_name": "gym/model",
            "name": "gym.model.call",
            "error_type": "RuntimeError",
            "message": "RuntimeError: no weather",
            "message_count": 1,
            "waited_for": None,
            "trace_id": f"{0xF0:032x}",
        },
        {
            "cause_count": 1,
            "rollout_count": 1,
            "root_count": 1,
            "cause": "timeout",
            "service_name": "gym/driver",
            "name": "gym.rollout",
            "error_type": None,
            "message": "timed out",
            "message_count": 1,
            "waited_for": "gym.model.call in gym/model, lost",
            "trace_id": f"{0xFF:032x}",
        },
    ]


def test_a_table_says_what_to_look_at(broken, run):
    done = run("errors", "logs")
    assert done.out.splitlines() == [
        "COUNT  ROLLOUTS  ROOTS  CAUSE    SERVICE  SPAN            ERROR",
        "    2         2      1  failed   model    gym.model.call  RuntimeError",
        "    RuntimeError: no weather",
        f"    first: reconstruct show {0xF0:032x}",
        "    1         1      1  timeout  driver   gym.rollout     -",
        "    timed out",
        "    waited for gym.model.call in gym/model, lost",
        f"    reconstruct show {0xFF:032x}",
    ]


def test_a_long_message_is_cut_and_others_are_counted(logs, run):
    for number in range(3):
        words = f"{'very ' * (200 if number < 2 else 1)}long\x1b[31m"
        logs["agent"].span(
            0xF0 + number, 1, None, "call", 0, 1, status={"code": "ERROR", "message": words}
        )
    done = run("errors", "logs")
    message = [line for line in done.out.splitlines() if "very" in line]
    assert len(message) == 3
    assert message[-1].endswith(" …")
    assert "\x1b" not in done.out
    logs["agent"].span(0xFE, 1, None, "call", 0, 1, status={"code": "ERROR", "message": "a"})
    assert run("errors", "logs", "--json").json[0]["message_count"] == 3


def test_causes_are_chosen_by_what_they_are(broken, run):
    assert [row["name"] for row in run("errors", "logs", "--service", "driver", "--json").json] == [
        "gym.rollout"
    ]
    assert len(run("errors", "logs", "--limit", "1", "--json").json) == 1
    assert len(run("errors", "logs", "--rollout", "9-1", "--json").json) == 1


def test_no_errors(logs, run):
    done = run("errors", "logs")
    assert (done.code, done.out, done.err) == (0, "", "no errors\n")

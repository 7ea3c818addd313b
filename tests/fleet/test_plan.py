"""Plans: each fault changes the fleet and only where it says, and progress survives the wire."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog.fleet.plan import FAULT_MEANINGS, Fault, Plan
from gymlog.fleet.progress import Progress

URLS = {
    name: f"http://{name}" for name in ("environment", "agent", "resources", "model", "model-2")
}


def options_with(*faults):
    return Plan(Path("logs"), faults=frozenset(faults)).server_options(URLS)


def test_each_fault_says_what_it_does():
    """The help text lists every fault."""
    assert set(FAULT_MEANINGS) == set(Fault)


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        (Fault.SLOW_HOST, {"agent", "model-2"}),
        (Fault.ERROR_TOOL, {"resources"}),
        (Fault.HANG_MODEL, {"agent", "model"}),
        (Fault.BYPASS, {"agent"}),
        (Fault.BLOCK, {"resources"}),
        (Fault.KILL, set()),
    ],
)
def test_a_fault_changes_its_own_servers_alone(fault, changed):
    """Every other server runs as in a healthy fleet."""
    healthy, faulty = options_with(), options_with(fault)
    assert {name for name in faulty if faulty[name] != healthy.get(name)} == changed


def test_every_server_of_a_plan_has_options():
    """What is started is what is configured."""
    for faults in (frozenset(), frozenset(Fault)):
        plan = Plan(Path("logs"), faults=faults)
        assert set(plan.servers()) == set(plan.server_options(URLS))


@given(
    in_flight=st.integers(0, 1 << 20),
    done=st.integers(0, 1 << 20),
    failures=st.dictionaries(st.text(), st.integers(1, 1 << 20), max_size=3),
    is_over=st.booleans(),
)
def test_progress_survives_the_lifeline(in_flight, done, failures, is_over):
    """What the driver tells as JSON is what the supervisor reads."""
    told = Progress(in_flight, done, Counter(failures), is_over)
    assert Progress.of(json.loads(json.dumps(told.message()))) == told
    assert told.ended == done + sum(failures.values())

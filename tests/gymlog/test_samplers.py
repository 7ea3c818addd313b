"""Samplers: the six of OTEL_TRACES_SAMPLER, decided at the root and kept by everyone after."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from gymlog import ids, notices, rollout_context, testing
from gymlog.samplers import sampler_from

SAMPLED, NOT_SAMPLED = 0x03, 0x02


@pytest.fixture(autouse=True)
def _fresh():
    notices.reset()
    yield
    notices.reset()


@pytest.mark.parametrize(
    ("name", "root", "sampled_parent", "unsampled_parent"),
    [
        ("always_on", True, True, True),
        ("always_off", False, False, False),
        ("parentbased_always_on", True, True, False),
        ("parentbased_always_off", False, True, False),
        ("", True, True, False),
        (" Always_OFF ", False, False, False),
    ],
)
def test_the_named_samplers(name, root, sampled_parent, unsampled_parent):
    """What each decides at a root, below a sampled and below an unsampled caller."""
    sampler = sampler_from(name, "")
    answers = [sampler("f" * 32, flags) for flags in (None, SAMPLED, NOT_SAMPLED)]
    assert answers == [root, sampled_parent, unsampled_parent]


@given(st.integers(1, 2**128 - 1), st.floats(0, 1))
def test_the_ratio_sampler_decides_as_the_sdk_does(trace_id, ratio):
    """Processes with another SDK keep the same traces."""
    reference = TraceIdRatioBased(ratio).should_sample(None, trace_id, "").decision.is_sampled()
    assert sampler_from("traceidratio", repr(ratio))(f"{trace_id:032x}", None) is reference


def test_the_ratio_is_a_share_of_the_traces():
    """A quarter is about a quarter; 0 is none and 1 is all."""
    trace_ids = [ids.new_trace_id() for _ in range(4000)]
    kept = {
        argument: sum(
            sampler_from("traceidratio", argument)(trace_id, None) for trace_id in trace_ids
        )
        for argument in ("0", "0.25", "1", "")
    }
    assert kept["0"] == 0
    assert 800 < kept["0.25"] < 1200
    assert kept["1"] == kept[""] == 4000


@pytest.mark.parametrize("argument", ["a lot", "1.5", "-0.1", "nan", "inf"])
def test_a_bad_ratio_is_told_and_all_is_kept(argument, capfd):
    """A typing error loses no data."""
    assert sampler_from("parentbased_traceidratio", argument)("f" * 32, None)
    error = capfd.readouterr().err
    assert f"OTEL_TRACES_SAMPLER_ARG={argument!r}" in error
    assert error.count("\n") == 1


def test_an_unknown_sampler_is_told_with_those_known(capfd):
    """One line: what, and what is accepted."""
    assert sampler_from("jaeger_remote", "")("f" * 32, None)
    error = capfd.readouterr().err
    assert "OTEL_TRACES_SAMPLER='jaeger_remote'" in error
    assert "parentbased_traceidratio" in error


def test_a_trace_is_kept_or_dropped_whole():
    """Whatever the root decided holds for every span below; the ids go on either way.

    root (sampled or not) ─ child ─ grandchild
    """
    with testing.captured(sampler=sampler_from("parentbased_traceidratio", "0.5")) as telemetry:
        for _ in range(64):
            with (
                telemetry.tracer.start_as_current_span("root") as root,
                telemetry.tracer.start_as_current_span("child"),
                telemetry.tracer.start_as_current_span("grandchild") as grandchild,
            ):
                assert grandchild.trace_id == root.trace_id
                assert grandchild.is_recording() == root.is_recording()
    counts: dict[str, int] = {}
    for span in telemetry.spans:
        counts[span["trace_id"]] = counts.get(span["trace_id"], 0) + 1
    assert set(counts.values()) == {3}
    assert 0 < len(counts) < 64


@pytest.mark.parametrize("ratio", ["0", "0.3", "1"])
def test_a_rollout_of_several_traces_is_kept_or_dropped_whole(ratio):
    """Whoever opens a root in it, in whichever process, decides alike.

    rollout r ─┬─ trace 1: root ─ child     in one process
               └─ trace 2: root ─ child     in another
    """
    traces: dict[str, set[str]] = {}
    for _ in range(2):
        with testing.captured(sampler=sampler_from("parentbased_traceidratio", ratio)) as telemetry:
            for number in range(200):
                with (
                    rollout_context(f"{number}-0"),
                    telemetry.tracer.start_as_current_span("root"),
                    telemetry.tracer.start_as_current_span("child"),
                ):
                    pass
        for span in telemetry.spans:
            rollout_id = span["attributes"]["nemo.gym.rollout.id"]
            traces.setdefault(rollout_id, set()).add(span["trace_id"])
    assert {len(mine) for mine in traces.values()} <= {2}
    assert abs(len(traces) - 200 * float(ratio)) < 30


def test_a_callers_decision_holds_in_a_rollout_too():
    """W3C's flag is what was decided, the rollout's id only what decides."""
    sampler = sampler_from("parentbased_traceidratio", "0.5")
    for number in range(20):
        with rollout_context(f"{number}-0"):
            assert sampler("f" * 32, SAMPLED)
            assert not sampler("0" * 32, NOT_SAMPLED)

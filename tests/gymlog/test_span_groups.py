"""Span groups: names, presets, specs, and the gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import (
    GymSpanGroup,
    SpanGroup,
    is_span_group_enabled,
    managed_span,
    notices,
    span_groups,
    testing,
)

SPINE = {"server", "http_client", "rollout"}


@pytest.fixture(autouse=True)
def _closed():
    before = span_groups.open_now()
    notices.reset()
    yield
    span_groups.restore(before)
    notices.reset()


@pytest.mark.parametrize(
    ("spec", "groups"),
    [
        ("default", {*SPINE, "job", "startup"}),
        ("per_rollout", {*SPINE, "verify", "agent", "model_call"}),
        ("all", GymSpanGroup.ALL_GROUPS),
        ("", set()),
        (" , ,", set()),
        ("verify", {"verify"}),
        (" VERIFY , Agent,verify", {"verify", "agent"}),
        ("default,sandbox", {*SPINE, "job", "startup", "sandbox"}),
        ("Default,nonsense", {*SPINE, "job", "startup"}),
        ("default;sandbox", set()),
    ],
)
def test_a_spec_is_a_comma_list_of_presets_and_groups(spec, groups):
    """In any case and any spacing; unknown names open nothing."""
    assert GymSpanGroup.resolve(spec) == groups


def test_all_reaches_the_groups_of_training_code():
    """And those alone have no gym presets."""
    assert SpanGroup.ALL_GROUPS < GymSpanGroup.ALL_GROUPS
    assert len(GymSpanGroup.ALL_GROUPS) == 16
    assert SpanGroup.resolve("all") == SpanGroup.ALL_GROUPS
    assert SpanGroup.resolve("default") == frozenset()


def test_every_preset_holds_known_groups_only():
    """And a resolved preset is what `presets` lists."""
    for name, groups in GymSpanGroup.presets().items():
        assert groups <= GymSpanGroup.ALL_GROUPS
        assert GymSpanGroup.resolve(name) == groups


def test_an_unknown_name_is_told_once_with_the_nearest(capfd):
    """And the known ones of the same spec are open."""
    for _ in range(3):
        assert span_groups.open_groups("per_rolout,agent,xyzzy") == {"agent"}
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "'per_rolout'" in lines[0]
    assert "did you mean 'per_rollout'?" in lines[0]
    assert "'xyzzy'" in lines[1]
    assert "did you mean" not in lines[1]
    assert "Known: default, per_rollout, all, agent, " in lines[1]


def test_the_gate_follows_what_is_open():
    """Opening closes what was open before."""
    span_groups.open_groups("agent")
    assert is_span_group_enabled("agent")
    assert not is_span_group_enabled("verify")
    span_groups.open_groups("verify")
    assert not is_span_group_enabled("agent")
    assert is_span_group_enabled(GymSpanGroup.VERIFY)
    span_groups.close_all()
    assert not is_span_group_enabled("verify")
    assert not is_span_group_enabled("no such group")


def test_a_closed_site_writes_nothing():
    """Only spans of open groups are lines."""
    with testing.captured("verify") as telemetry:
        with managed_span("agent", "closed") as closed, managed_span("verify", "open"):
            assert closed is None
    assert [span["name"] for span in telemetry.spans] == ["open"]


@given(st.text())
def test_any_spec_resolves(spec):
    """A spec from the environment never raises; what it opens is known."""
    assert GymSpanGroup.resolve(spec) <= GymSpanGroup.ALL_GROUPS
    names = {name.strip().lower() for name in spec.split(",")} - {""}
    assert GymSpanGroup.unknown(spec).keys() == {
        name
        for name in names
        if name not in GymSpanGroup.presets() and name not in GymSpanGroup.ALL_GROUPS
    }

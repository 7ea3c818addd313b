"""What a rollout costs in lines and bytes (the contract's size; KB are 1,024 bytes).

A trivial rollout is two model calls, one tool call and one verification.
"""

from collections import defaultdict

import pytest

from gymlog import testing


@pytest.mark.parametrize(
    ("preset", "most_lines", "most_bytes"),
    [("crowded", 16, 8 * 1024), ("healthy", 22, 11 * 1024)],
    ids=["default", "per_rollout"],
)
def test_a_trivial_rollout_is_small(preset, most_lines, most_bytes, request):
    """Spans only: `process` lines belong to no rollout."""
    run = request.getfixturevalue(preset)
    sizes = defaultdict(list)
    for line, record in zip(run.lines, run.records, strict=True):
        rollout_id = record.get("attributes", {}).get("nemo.gym.rollout.id")
        if record["record_type"] == "span" and rollout_id is not None:
            sizes[rollout_id].append(len(line))
    assert len(sizes) >= 8
    for mine in sizes.values():
        assert len(mine) <= most_lines
        assert sum(mine) <= most_bytes


def test_a_common_span_is_small():
    """Three short attributes, a service of the gym, a rollout."""
    with testing.captured(resource={"service.name": "nemo-gym/policy_model"}) as telemetry:
        attributes = {"nemo.gym.rollout.id": "12-0", "a.short.key": "value", "another": 12}
        with telemetry.tracer.start_as_current_span("gym.agent.responses"):
            telemetry.tracer.open_span("gym.model.responses", attributes=attributes).end()
            assert telemetry.span("gym.model.responses")["parent_span_id"]
    assert len(telemetry.file.writes[1]) <= 500

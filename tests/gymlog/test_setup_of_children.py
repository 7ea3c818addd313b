"""What a parent process hands to the ones it starts: `configure_telemetry_env`."""

import os

import pytest

from gymlog import TelemetryConfig, configure_telemetry_env


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment of the test's own, in place of the process's."""
    own: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", own)
    return own


@pytest.mark.parametrize(
    ("config", "variables"),
    [
        (None, {}),
        (TelemetryConfig(run_id="r"), {}),
        (TelemetryConfig(), {"NEMO_GYM_OTEL_ENABLED": "0", "NEMO_LENS_ENABLED": "1"}),
        (TelemetryConfig(enabled=True), {"NEMO_GYM_OTEL_ENABLED": "0"}),
        (TelemetryConfig(enabled=True), {"NEMO_LENS_ENABLED": "off"}),
    ],
)
def test_a_parent_with_telemetry_off_sets_nothing(
    environ: dict[str, str], config: TelemetryConfig | None, variables: dict[str, str]
) -> None:
    """The environment's word counts before the configuration's."""
    environ.clear()
    environ.update(variables)
    assert configure_telemetry_env(config) is None
    assert environ == variables


def test_a_parent_switches_its_children_on(environ: dict[str, str]) -> None:
    """By the configuration, or by the environment alone."""
    assert configure_telemetry_env(TelemetryConfig(enabled=True, span_groups="job"))
    assert environ["NEMO_GYM_OTEL_ENABLED"] == "1"
    assert environ["NEMO_GYM_OTEL_SPAN_GROUPS"] == "job"
    environ.clear()
    environ["NEMO_LENS_ENABLED"] = "yes"
    assert configure_telemetry_env(None)
    assert "NEMO_GYM_OTEL_ENABLED" not in environ


RUN_IDS = {
    "NEMO_GYM_OTEL_RUN_ID": "gym",
    "NEMO_LENS_RUN_ID": "lens",
    "configuration": "block",
    "SLURM_JOB_ID": "4711",
}
"""Where a run id comes from, what counts most first."""


@pytest.mark.parametrize("count", range(5))
def test_the_run_id_is_the_first_that_is_set(environ: dict[str, str], count: int) -> None:
    """The variables, the configuration, the cluster's job; blank ones do not count."""
    first, *_ = [*list(RUN_IDS)[count:], ""]
    config = TelemetryConfig(enabled=True)
    for source, value in RUN_IDS.items():
        value = value if source in list(RUN_IDS)[count:] else " "
        if source == "configuration":
            config.run_id = value
        else:
            environ[source] = value
    run_id = configure_telemetry_env(config)
    assert run_id is not None
    assert environ["NEMO_GYM_OTEL_RUN_ID"] == run_id
    if first:
        assert run_id == RUN_IDS[first]
    else:
        assert len(run_id) == 12
        assert int(run_id, 16) >= 0
    assert configure_telemetry_env(config) == run_id, "the second call finds the first one's"


def test_every_run_has_its_own_id(environ: dict[str, str]) -> None:
    """When nothing names it."""
    run_ids = set()
    for _ in range(20):
        environ.clear()
        run_ids.add(configure_telemetry_env(TelemetryConfig(enabled=True)))
    assert len(run_ids) == 20

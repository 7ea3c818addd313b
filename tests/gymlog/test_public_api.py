"""The published names: a gym switches to gymlog by changing one import."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import gymlog

TELEMETRY = [
    "TELEMETRY_KEY_NAME", "TelemetryConfig", "MemoryProfilingConfig", "GymSpanGroup", "SpanGroup",
    "configure_telemetry_env", "init_telemetry", "get_telemetry", "shutdown_telemetry",
    "is_span_group_enabled", "is_telemetry_env_enabled", "is_telemetry_metrics_enabled",
    "memory_profiling_config_from_env", "telemetry_config_from_global_config",
    "managed_span", "span_cm", "trace_fn", "safe_set_span_attributes",
]  # fmt: skip
SERVER_UTILITIES = ["request", "current_rollout_id", "rollout_context"]

REQUIRED = inspect.Parameter.empty
MANY = inspect.Parameter.VAR_KEYWORD

SIGNATURES: dict[str, dict[str, object]] = {
    "telemetry_config_from_global_config": {"config": REQUIRED},
    "configure_telemetry_env": {"telemetry_config": REQUIRED},
    "init_telemetry": {"server_name": None, "server_type": None, "resource_attributes": None},
    "get_telemetry": {},
    "shutdown_telemetry": {"timeout_ms": 5000},
    "is_telemetry_env_enabled": {},
    "is_telemetry_metrics_enabled": {},
    "memory_profiling_config_from_env": {"defaults": REQUIRED},
    "is_span_group_enabled": {"group": REQUIRED},
    "managed_span": {"group": REQUIRED, "name": REQUIRED, "tracer": None, "attributes": MANY},
    "span_cm": {
        "name": REQUIRED, "tracer": None, "record_exception": True, "attributes": MANY,
    },
    "trace_fn": {"group": REQUIRED, "name": REQUIRED, "tracer": None},
    "rollout_context": {"rollout_id": REQUIRED},
    "request": {
        "method": REQUIRED, "url": REQUIRED,
        "_internal": False, "_max_connection_retries": None, "_server_name": None,
    },
}  # fmt: skip
"""Function -> its published parameters in order, with their defaults."""


@pytest.mark.parametrize("name", [*TELEMETRY, *SERVER_UTILITIES])
def test_a_published_name_is_here(name: str) -> None:
    """It can be imported, and is said to be public."""
    assert name in gymlog.__all__
    assert getattr(gymlog, name) is not None


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_published_function_takes_what_it_took(name: str) -> None:
    """The same parameters in the same places; gymlog's own come after and have defaults."""
    function: Callable[..., Any] = getattr(gymlog, name)
    parameters = list(inspect.signature(function).parameters.values())
    published = SIGNATURES[name]
    for parameter, (expected, default) in zip(parameters, published.items(), strict=False):
        if default is MANY:
            assert parameter.kind is MANY
            continue
        assert parameter.name == expected
        assert parameter.default == default
        assert parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert len(parameters) >= len(published)
    for own in parameters[len(published) :]:
        assert own.default is not REQUIRED or own.kind is MANY


def test_redaction_has_its_published_form() -> None:
    """`safe_set_span_attributes(span, attrs, redact_keys=…)`, by place."""
    span, attributes, redact_keys = inspect.signature(
        gymlog.safe_set_span_attributes
    ).parameters.values()
    assert span.default is attributes.default is REQUIRED
    assert redact_keys.name == "redact_keys"
    assert redact_keys.default == {
        "prompt", "input_text", "output_text", "text", "password", "token", "secret", "key",
    }  # fmt: skip


def test_requests_go_out_as_coroutines() -> None:
    """And take what aiohttp takes."""
    assert inspect.iscoroutinefunction(gymlog.request)
    *_, last = inspect.signature(gymlog.request).parameters.values()
    assert last.kind is MANY


def test_span_groups_and_presets_are_the_published_ones() -> None:
    """Of the newest release: `startup` is in `default`."""
    groups = gymlog.GymSpanGroup
    assert groups.resolve("default") == {"job", "server", "http_client", "rollout", "startup"}
    assert groups.resolve("per_rollout") == {
        "server", "http_client", "rollout", "verify", "agent", "model_call",
    }  # fmt: skip
    assert set(groups.CROSS_PROCESS_SPINE) == {"server", "http_client", "rollout"}
    assert groups.resolve("all") == groups.ALL_GROUPS >= {
        "job", "server", "http_client", "rollout", "verify", "agent", "model_call", "sandbox",
        "startup", "checkpoint", "evaluate", "step", "optimizer", "forward_backward",
        "model_init", "load_checkpoint",
    }  # fmt: skip
    assert issubclass(groups, gymlog.SpanGroup)
    assert groups.resolve(" Verify , sandbox,, PER_ROLLOUT") == groups.resolve("per_rollout") | {
        "verify",
        "sandbox",
    }


def test_the_handle_has_the_published_members() -> None:
    """tracer, meter, is_exporting, shutdown(timeout_ms)."""
    handle = gymlog.TelemetryHandle
    for member in ("tracer", "meter", "is_exporting"):
        assert isinstance(vars(handle)[member], property)
    assert list(inspect.signature(handle.shutdown).parameters) == ["self", "timeout_ms"]
    assert gymlog.TELEMETRY_KEY_NAME == "telemetry"


def test_every_public_function_says_what_it_does() -> None:
    """In its docstring, or the one beside it."""
    for name in gymlog.__all__:
        value = getattr(gymlog, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            assert inspect.getdoc(value), name


def test_a_misspelt_name_is_an_attribute_error() -> None:
    """Not an import of something else."""
    with pytest.raises(AttributeError, match="has no attribute 'trace_function'"):
        gymlog.trace_function  # noqa: B018 - the access is the test

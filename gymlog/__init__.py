"""Structured-log-first tracing for reinforcement-learning gyms.

Each span becomes one JSON line on stdout, written when it ends. Importing this package loads
nothing of OpenTelemetry, aiohttp, fastapi or pydantic; a name is imported when it is first used,
and a call site of a process with telemetry off needs none of them either.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from gymlog.binding import bind, carried, carrier
from gymlog.environment import is_telemetry_env_enabled, is_telemetry_metrics_enabled
from gymlog.errors import GymlogError, InvalidRolloutIdError
from gymlog.rollout import current_rollout_id, rollout_context, rollout_id_from_body, rollout_path
from gymlog.setup import (
    TelemetryHandle,
    configure_telemetry_env,
    get_telemetry,
    init_telemetry,
    shutdown_telemetry,
)
from gymlog.sites import managed_span, safe_set_span_attributes, span_cm, trace_fn
from gymlog.span_groups import GymSpanGroup, SpanGroup, is_span_group_enabled

if TYPE_CHECKING:
    from gymlog.client import request
    from gymlog.config import (
        TELEMETRY_KEY_NAME,
        MemoryProfilingConfig,
        TelemetryConfig,
        memory_profiling_config_from_env,
        telemetry_config_from_global_config,
    )
    from gymlog.observers import watch_event_loop
    from gymlog.server import instrument_fastapi
    from gymlog.startup import ServerStartup, StartupTrace

__all__ = [
    "TELEMETRY_KEY_NAME",
    "GymSpanGroup",
    "GymlogError",
    "InvalidRolloutIdError",
    "MemoryProfilingConfig",
    "ServerStartup",
    "SpanGroup",
    "StartupTrace",
    "TelemetryConfig",
    "TelemetryHandle",
    "bind",
    "carried",
    "carrier",
    "configure_telemetry_env",
    "current_rollout_id",
    "get_telemetry",
    "init_telemetry",
    "instrument_fastapi",
    "is_span_group_enabled",
    "is_telemetry_env_enabled",
    "is_telemetry_metrics_enabled",
    "managed_span",
    "memory_profiling_config_from_env",
    "request",
    "rollout_context",
    "rollout_id_from_body",
    "rollout_path",
    "safe_set_span_attributes",
    "shutdown_telemetry",
    "span_cm",
    "telemetry_config_from_global_config",
    "trace_fn",
    "watch_event_loop",
]

_LAZY: Final = {
    "TELEMETRY_KEY_NAME": "config",
    "MemoryProfilingConfig": "config",
    "ServerStartup": "startup",
    "StartupTrace": "startup",
    "TelemetryConfig": "config",
    "instrument_fastapi": "server",
    "memory_profiling_config_from_env": "config",
    "request": "client",
    "telemetry_config_from_global_config": "config",
    "watch_event_loop": "observers",
}
"""Names that need more than a call site does -> their module."""


def __getattr__(name: str) -> Any:  # Any: whichever of the names
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'gymlog' has no attribute {name!r}")
    value = getattr(import_module(f"gymlog.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

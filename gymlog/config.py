"""TelemetryConfig: the `telemetry:` block of a gym's configuration, and its environment.

Every field can be set in the environment; `environment` says which variable counts. Names and
defaults are NeMo Gym's, except that the exporter is `console` here: the log is the durable
channel. Imported only when telemetry is on or configured, for it needs pydantic.
"""

import os
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from gymlog.notices import notice
from gymlog.resource import declared_resource
from gymlog.semconv import SERVICE_NAME
from gymlog.settings import FIELDS, RESOURCE_ATTRIBUTES

__all__ = [
    "TELEMETRY_KEY_NAME",
    "MemoryProfilingConfig",
    "TelemetryConfig",
    "environment_of",
    "find_field",
    "memory_profiling_config_from_env",
    "telemetry_config_from_environment",
    "telemetry_config_from_global_config",
]

TELEMETRY_KEY_NAME: Final = "telemetry"


class MemoryProfilingConfig(BaseModel):
    """Periodic sampling of the host's memory and of each server's process tree."""

    model_config = ConfigDict(extra="allow")

    enabled: bool = False
    """Collect host memory and every server's process tree."""
    interval_seconds: float = Field(default=1.0, gt=0)
    """Seconds between samples."""

    def model_post_init(self, context: Any, /) -> None:  # Any: pydantic's signature
        """Name the keys that are not known: a misspelt one has no effect."""
        del context
        _name_unknown(f"{TELEMETRY_KEY_NAME}.memory_profiling", self.model_extra)


class TelemetryConfig(BaseModel):
    """What a gym's telemetry does; everything off by default."""

    model_config = ConfigDict(extra="allow")

    enabled: bool = False
    """Master switch: when false, a call site costs one frozenset test."""
    service_name: str = "nemo-gym"
    """`service.name`; each server appends its own name (`service_name_per_server`)."""
    service_name_per_server: bool = True
    """Whether `service.name` becomes `{service_name}/{server name}`."""
    span_groups: str = "default"
    """A preset (default, per_rollout, all), groups, or both with commas."""
    traces_enabled: bool = True
    """Write spans."""
    metrics_enabled: bool = True
    """Write metrics."""
    logs_enabled: bool = False
    """Write the program's log records, with trace and span id."""
    exporter: str = "console"
    """Where records go: `console` is one JSON line each on stdout, `otlp` a receiver; or both."""
    otlp_endpoint: str | None = None
    """OTEL_EXPORTER_OTLP_ENDPOINT."""
    otlp_protocol: str | None = None
    """OTEL_EXPORTER_OTLP_PROTOCOL: grpc or http/protobuf."""
    otlp_headers: str | None = None
    """OTEL_EXPORTER_OTLP_HEADERS."""
    run_id: str | None = None
    """`nemo.run.id` of every process of a run; made by `configure_telemetry_env` when unset."""
    memory_profiling: MemoryProfilingConfig = Field(default_factory=MemoryProfilingConfig)
    """Memory sampling."""
    event_loop_sample_interval_seconds: float = Field(default=1.0, gt=0)
    """Seconds between samples of event-loop lag."""
    event_loop_task_count: bool = False
    """Also count the tasks of the loop (1 ms at 16,000 tasks)."""

    def model_post_init(self, context: Any, /) -> None:  # Any: pydantic's signature
        """Name the keys that are not known: a misspelt one has no effect."""
        del context
        _name_unknown(TELEMETRY_KEY_NAME, self.model_extra)


_REMOVED: Final = frozenset({"instrument_aiohttp", "export_strategy", "export_rank"})
"""Fields of older releases: accepted, without effect."""


def _name_unknown(block: str, extra: Mapping[str, object] | None) -> None:
    for key in extra or {}:
        if key not in _REMOVED:
            notice(f"{block}.{key}", f"{block}.{key} is not known and has no effect")


def telemetry_config_from_global_config(config: Any) -> TelemetryConfig:  # Any: published signature
    """Return the `telemetry` block of a gym's merged configuration; all defaults without one.

    Any mapping will do; OmegaConf's resolve themselves as they are read. Raises
    pydantic.ValidationError for a value of wrong type.
    """
    block = config.get(TELEMETRY_KEY_NAME) if config is not None else None
    return TelemetryConfig() if block is None else TelemetryConfig.model_validate(block)


def telemetry_config_from_environment(
    defaults: TelemetryConfig | None = None, environ: Mapping[str, str] | None = None
) -> TelemetryConfig:
    """Return `defaults` with every field that the environment sets."""
    config = (defaults or TelemetryConfig()).model_copy(deep=True)
    for field in FIELDS:
        found = find_field(field, environ)
        if found is not None:
            holder, name = _place(config, field)
            setattr(holder, name, found[0])
    return config


def memory_profiling_config_from_env(
    defaults: MemoryProfilingConfig, environ: Mapping[str, str] | None = None
) -> MemoryProfilingConfig:
    """Return `defaults` with every field that the environment sets."""
    values = {
        name: found[0]
        for name in MemoryProfilingConfig.model_fields
        if (found := find_field(f"memory_profiling.{name}", environ)) is not None
    }
    return defaults.model_copy(update=values)


def environment_of(config: TelemetryConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hand `config` to child processes.

    A field that `environ` sets already, under whichever of its names, is left out: the
    environment counts before the configuration.
    """
    handed_on: dict[str, str] = {}
    for field, setting in FIELDS.items():
        if find_field(field, environ) is None:
            _put(handed_on, setting.name, getattr(*_place(config, field)))
    return handed_on


def find_field(field: str, environ: Mapping[str, str] | None = None) -> tuple[Any, str] | None:
    """Return what the environment sets a field to, and the variable that does; None: nothing.

    The service's name may be a resource attribute. Any: of whichever type the field has.
    """
    found = FIELDS[field].find(environ)
    if found is None and field == "service_name":
        declared = declared_resource(os.environ if environ is None else environ).get(SERVICE_NAME)
        return (str(declared), RESOURCE_ATTRIBUTES.name) if declared else None
    return found


def _place(config: TelemetryConfig, field: str) -> tuple[BaseModel, str]:
    """Return the block that holds a field, and its name there."""
    outer, _, inner = field.rpartition(".")
    return (getattr(config, outer), inner) if outer else (config, inner)


def _put(variables: dict[str, str], name: str, value: object) -> None:
    if isinstance(value, bool):
        variables[name] = "1" if value else "0"
    elif value is not None:
        variables[name] = str(value)

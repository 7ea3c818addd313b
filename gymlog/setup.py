"""Switching telemetry on and off in a process: the only place that wires the rooms together.

A supervisor calls `configure_telemetry_env` before it starts its servers; each server calls
`init_telemetry`, once, and reads nothing but its environment. Nothing here raises into the host.
"""

import atexit
import os
import signal
import threading
import uuid
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Final

from gymlog import settings, sites, span_groups
from gymlog.environment import as_bool, as_text, is_telemetry_env_enabled, read, read_setting
from gymlog.notices import notice

if TYPE_CHECKING:
    from opentelemetry import metrics, trace

    from gymlog.config import TelemetryConfig
    from gymlog.samplers import Sampler
    from gymlog.tracer import TracerProvider
    from gymlog.values import Limits

__all__ = [
    "TelemetryHandle",
    "configure_telemetry_env",
    "get_telemetry",
    "init_telemetry",
    "shutdown_telemetry",
]

_RUN_ID_VARIABLE: Final = "NEMO_GYM_OTEL_RUN_ID"


class TelemetryHandle:
    """What is on in this process."""

    def __init__(self, provider: "TracerProvider", config: "TelemetryConfig") -> None:
        self._provider = provider
        self.config = config

    @property
    def tracer(self) -> "trace.Tracer":
        """gymlog's own tracer, an OpenTelemetry Tracer; without traces one that does nothing."""
        from opentelemetry import trace

        return self._provider.tracer if self.is_exporting else trace.NoOpTracer()

    @property
    def tracer_provider(self) -> "TracerProvider":
        """The provider of all tracers that write lines."""
        return self._provider

    @property
    def meter(self) -> "metrics.Meter":
        """The meter of the global OpenTelemetry meter provider."""
        from opentelemetry import metrics

        return metrics.get_meter("gymlog")

    @property
    def is_exporting(self) -> bool:
        """Whether spans are written."""
        return self.config.traces_enabled

    def shutdown(self, timeout_ms: int = 5000) -> None:
        """Do what `shutdown_telemetry` does."""
        shutdown_telemetry(timeout_ms)


_lock = threading.RLock()
_initialised = False
_handle: TelemetryHandle | None = None


def configure_telemetry_env(telemetry_config: "TelemetryConfig | None") -> str | None:
    """Hand a configuration to the processes started from here, by `os.environ`.

    For the parent process, before it starts any server. What the environment already sets stays.
    Returns the run id that all of them share, or None when telemetry is off (then nothing is
    set): NEMO_GYM_OTEL_RUN_ID, else the configuration's, else SLURM_JOB_ID, else a new one.
    """
    is_on = read_setting("ENABLED", as_bool)
    if is_on is None:
        is_on = telemetry_config is not None and telemetry_config.enabled
    if not is_on:
        return None
    from gymlog.config import TelemetryConfig, environment_of

    config = telemetry_config or TelemetryConfig(enabled=True)
    os.environ.update(environment_of(config, os.environ))
    run_id = read(_RUN_ID_VARIABLE, as_text) or read("NEMO_LENS_RUN_ID", as_text)
    run_id = run_id or read("SLURM_JOB_ID", as_text) or uuid.uuid4().hex[:12]
    os.environ[_RUN_ID_VARIABLE] = run_id
    return run_id


def init_telemetry(
    server_name: str | None = None,
    server_type: str | None = None,
    resource_attributes: Mapping[str, object] | None = None,
) -> TelemetryHandle | None:
    """Switch telemetry on in this process when its environment says so; later calls do nothing.

    Returns the handle, or None when telemetry is off. `resource_attributes` are added to the
    process's resource. Never raises: what goes wrong is one line on stderr.
    """
    global _initialised, _handle
    with _lock:
        if _initialised:
            return _handle
        _initialised = True
        try:
            if is_telemetry_env_enabled() and not settings.SDK_DISABLED.value():
                _handle = _start(server_name, server_type, resource_attributes)
            _say_what_is_on()
        except Exception as error:  # noqa: BLE001 - the host must not notice
            state = "stays off" if _handle is None else "is on"
            notice("init_telemetry", f"telemetry {state}: {type(error).__name__}: {error}")
        return _handle


def get_telemetry() -> TelemetryHandle | None:
    """Return this process's handle, or None when telemetry is off."""
    return _handle


def shutdown_telemetry(timeout_ms: int = 5000) -> None:
    """Close every call site, write what is still open and the `stopped` record; idempotent.

    Nothing is buffered, so `timeout_ms` bounds nothing that takes time.
    """
    del timeout_ms
    global _handle
    with _lock:
        handle, _handle = _handle, None
        if handle is None:
            return
        span_groups.close_all()
        sites.install(None)
        atexit.unregister(shutdown_telemetry)
        if handle.config.logs_enabled:
            from gymlog.logs import remove_logging

            remove_logging()
        handle.tracer_provider.shutdown()


def _start(
    server_name: str | None,
    server_type: str | None,
    resource_attributes: Mapping[str, object] | None,
) -> TelemetryHandle:
    from gymlog.channel import Channel
    from gymlog.config import telemetry_config_from_environment
    from gymlog.resource import resource_of
    from gymlog.service import ServiceInstance
    from gymlog.sink import Sink
    from gymlog.tracer import TracerProvider

    config = telemetry_config_from_environment()
    resource = resource_of(
        service_name=config.service_name,
        per_server=config.service_name_per_server,
        server_name=server_name,
        server_type=server_type,
        run_id=config.run_id,
        extra=resource_attributes,
    )
    wait_seconds = settings.WRITE_WAIT_SECONDS.value()
    line_max = round(settings.LINE_MAX_BYTES.value())
    service = ServiceInstance(
        resource,
        lambda: Sink(Channel(1, wait_seconds=wait_seconds), line_max_bytes=line_max),
        span_start_after_seconds=settings.SPAN_START_AFTER_SECONDS.value(),
        process_interval_seconds=settings.PROCESS_INTERVAL_SECONDS.value(),
    )
    provider = TracerProvider(
        service,
        sampler=_sampler(),
        limits=_limits(),
        silent_scopes=settings.SILENT_SCOPES.value(),
    )
    service.start()
    atexit.register(shutdown_telemetry)
    _handle_sigterm()
    if config.traces_enabled:
        _install_globally(provider)
        sites.install(provider.tracer)
        span_groups.open_groups(config.span_groups)
    if config.logs_enabled:
        from gymlog.logs import install_logging

        install_logging(service, limits=provider.limits)
    return TelemetryHandle(provider, config)


def _install_globally(provider: "TracerProvider") -> None:
    """Make the provider and the propagator OpenTelemetry's global ones, unless others are."""
    from opentelemetry import propagate, trace

    from gymlog.propagation import Propagator

    present = trace.get_tracer_provider()
    if not isinstance(present, trace.ProxyTracerProvider):
        kind = f"{type(present).__module__}.{type(present).__qualname__}"
        notice(
            "global tracer provider",
            f"OpenTelemetry's global tracer provider is already a {kind}; it stays. gymlog "
            "writes its own spans; what other libraries trace goes to that provider",
        )
        return
    trace.set_tracer_provider(provider)
    propagate.set_global_textmap(Propagator())


def _sampler() -> "Sampler | None":
    """Return the sampler of the environment, None for the one that costs nothing."""
    from gymlog.samplers import DEFAULT, sampler_from

    name = settings.SAMPLER.value()
    if name == DEFAULT:
        return None
    is_ratio = name.endswith("traceidratio")
    return sampler_from(name, str(settings.SAMPLER_ARGUMENT.value()) if is_ratio else "")


def _limits() -> "Limits":
    """Return the limits of OpenTelemetry's variables."""
    from gymlog.values import Limits

    return Limits(
        characters=settings.VALUE_LENGTH_LIMIT.value(),
        attributes=settings.ATTRIBUTE_COUNT_LIMIT.value(),
        events=settings.EVENT_COUNT_LIMIT.value(),
        links=settings.LINK_COUNT_LIMIT.value(),
        event_attributes=settings.EVENT_ATTRIBUTE_COUNT_LIMIT.value(),
        link_attributes=settings.LINK_ATTRIBUTE_COUNT_LIMIT.value(),
    )


def _say_what_is_on() -> None:
    """Tell a person at a terminal, or who asked for it, what was switched on and why."""
    is_wanted = settings.VERBOSE.value()
    if is_wanted is None:
        is_wanted = os.isatty(2)
    if is_wanted:
        from gymlog.explain import self_report

        notice(None, self_report(_handle.tracer_provider.service.resource if _handle else None))


def _handle_sigterm() -> None:
    """Write the open spans when SIGTERM would end the process at once, then let it.

    Only where nobody handles the signal; atexit does not run then. GYMLOG_HANDLE_SIGTERM=0
    leaves the signal alone.
    """
    if not settings.HANDLE_SIGTERM.value():
        return
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_DFL)
    handle = _handle
    if handle is not None and handle.tracer_provider.service.sink.is_writing():
        # This thread is in the middle of a line; another one waits until it is whole.
        threading.Thread(target=_end, args=(number,), name="gymlog-sigterm").start()
    else:
        _end(number)


def _end(number: int) -> None:
    shutdown_telemetry()
    os.kill(os.getpid(), number)

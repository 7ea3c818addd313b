"""Switching telemetry on and off in a process: the only place that wires the rooms together.

A supervisor calls `configure_telemetry_env` before it starts its servers; each server calls
`init_telemetry`, once, and reads nothing but its environment. Nothing here raises into the host.
"""

import atexit
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Final, cast

from gymlog import settings, sites, span_groups
from gymlog.environment import as_bool, as_text, is_telemetry_env_enabled, read, read_setting
from gymlog.notices import notice

if TYPE_CHECKING:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics.export import MetricExporter

    from gymlog.config import TelemetryConfig
    from gymlog.metrics.collector import Collector
    from gymlog.otlp.tee import ExportingSink
    from gymlog.samplers import Sampler
    from gymlog.service import ServiceInstance
    from gymlog.sink import Sink
    from gymlog.tracer import TracerProvider
    from gymlog.values import Limits

__all__ = [
    "TelemetryHandle",
    "before_shutdown",
    "configure_telemetry_env",
    "get_telemetry",
    "init_telemetry",
    "shutdown_telemetry",
]

_RUN_ID_VARIABLE: Final = "NEMO_GYM_OTEL_RUN_ID"


class TelemetryHandle:
    """What is on in this process."""

    def __init__(
        self,
        provider: "TracerProvider",
        config: "TelemetryConfig",
        collector: "Collector | None" = None,
    ) -> None:
        self._provider = provider
        self.config = config
        self.collector = collector
        """What collects metrics; None without them."""

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
        """An OpenTelemetry Meter for a gym's own metrics; without metrics one that does nothing."""
        from opentelemetry import metrics

        if self.collector is None:
            return metrics.NoOpMeter("gymlog")
        return self.collector.provider.get_meter("gymlog")

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
_before_shutdown: set[Callable[[BaseException | None], None]] = set()


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
    *,
    fd: int = 1,
) -> TelemetryHandle | None:
    """Switch telemetry on in this process when its environment says so; later calls do nothing.

    Returns the handle, or None when telemetry is off. `resource_attributes` are added to the
    process's resource. `fd` is where the lines go, for a program whose stdout is its user's.
    Never raises: what goes wrong is one line on stderr.
    """
    global _initialised, _handle
    with _lock:
        if _initialised:
            return _handle
        _initialised = True
        try:
            if is_telemetry_env_enabled() and not settings.SDK_DISABLED.value():
                _handle = _start(server_name, server_type, resource_attributes, fd)
            _say_what_is_on(fd)
        except Exception as error:  # noqa: BLE001 - the host must not notice
            state = "stays off" if _handle is None else "is on"
            notice("init_telemetry", f"telemetry {state}: {type(error).__name__}: {error}")
        return _handle


def get_telemetry() -> TelemetryHandle | None:
    """Return this process's handle, or None when telemetry is off."""
    return _handle


def shutdown_telemetry(timeout_ms: int = 5000) -> None:
    """Close every call site, write what is still open and the `stopped` record; idempotent.

    Lines are not buffered; `timeout_ms` bounds the last collection of metrics, and the time that
    what is on its way to OTLP has.
    """
    _shutdown(sys.exc_info()[1] or getattr(sys, "last_value", None), timeout_ms)


def before_shutdown(callback: Callable[[BaseException | None], None]) -> None:
    """Call `callback` when telemetry ends here, with the exception that ends it, if one does."""
    _before_shutdown.add(callback)


def _shutdown(cause: BaseException | None, timeout_ms: int = 5000) -> None:
    global _handle
    with _lock:
        handle, _handle = _handle, None
        if handle is None:
            return
        for callback in tuple(_before_shutdown):
            try:
                callback(cause)
            except Exception as error:  # noqa: BLE001 - the rest is still to be written
                notice("before shutdown", f"a last step failed: {type(error).__name__}: {error}")
        span_groups.close_all()
        sites.install(None)
        atexit.unregister(shutdown_telemetry)
        if handle.config.logs_enabled:
            from gymlog.logs import remove_logging

            remove_logging()
        from gymlog.observers import stop_observers

        stop_observers()
        finish_export = getattr(handle.tracer_provider.service.sink, "finish", None)
        deadline = time.monotonic() + timeout_ms / 1_000
        if handle.collector is not None:
            handle.collector.stop(timeout_ms if finish_export is None else timeout_ms / 2)
        if finish_export is not None:
            finish_export(deadline - time.monotonic())
        handle.tracer_provider.shutdown()


def _start(
    server_name: str | None,
    server_type: str | None,
    resource_attributes: Mapping[str, object] | None,
    fd: int,
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

    def make_sink() -> Sink:
        return Sink(Channel(fd, wait_seconds=wait_seconds), line_max_bytes=line_max)

    service = ServiceInstance(
        resource,
        _exporting(make_sink, config, lambda: service.resource) if _sends(config) else make_sink,
        span_start_after_seconds=settings.SPAN_START_AFTER_SECONDS.value(),
        process_interval_seconds=settings.PROCESS_INTERVAL_SECONDS.value(),
    )
    provider = TracerProvider(
        service,
        sampler=_sampler(),
        keeps_errors=settings.KEEP_ERRORS.value(),
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
    from gymlog.observers import start_observers

    collector = _start_metrics(service, config) if config.metrics_enabled else None
    meter = None if collector is None else collector.provider.background_meter("gymlog.observers")
    start_observers(meter, config, service)
    return TelemetryHandle(provider, config, collector)


def _sends(config: "TelemetryConfig") -> bool:
    """Say whether records go to OTLP, be it besides stdout."""
    return "otlp" in config.exporter.split(",")


def _writes_lines(config: "TelemetryConfig") -> bool:
    return "console" in config.exporter.split(",")


def _exporting(
    make_sink: Callable[[], "Sink"],
    config: "TelemetryConfig",
    resource: Callable[[], Mapping[str, object]],
) -> Callable[[], "Sink"]:
    """Return what makes sinks that send to OTLP what the configuration switches on."""
    from gymlog.otlp.receiver import Signal
    from gymlog.otlp.tee import exporting

    switches: dict[Signal, bool] = {"traces": config.traces_enabled, "logs": config.logs_enabled}
    signals = frozenset(signal for signal, is_on in switches.items() if is_on)
    return exporting(make_sink, resource, signals=signals, writes_lines=_writes_lines(config))


def _metric_exporters(service: "ServiceInstance") -> "list[MetricExporter]":
    from gymlog.otlp.metric_exporters import metric_exporters

    return metric_exporters(
        lambda points: cast("ExportingSink", service.sink).count_failed(points)  # see `_exporting`
    )


def _start_metrics(service: "ServiceInstance", config: "TelemetryConfig") -> "Collector":
    """Let call sites measure, and write metrics as lines, send them, or both."""
    from gymlog.metrics.collector import Collector, install_globally

    collector = Collector(
        service,
        interval_seconds=settings.METRIC_EXPORT_INTERVAL.value() / 1_000,
        timeout_seconds=settings.METRIC_EXPORT_TIMEOUT.value() / 1_000,
        exemplar_filter=settings.METRICS_EXEMPLAR_FILTER.value(),
        writes_lines=_writes_lines(config),
        make_exporters=(lambda: _metric_exporters(service)) if _sends(config) else None,
    )
    install_globally(collector.provider)
    collector.start()
    return collector


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


def _say_what_is_on(fd: int) -> None:
    """Tell a person at a terminal, or who asked for it, what was switched on and why."""
    is_wanted = settings.VERBOSE.value()
    if is_wanted is None:
        is_wanted = os.isatty(2)
    if is_wanted:
        from gymlog.explain import self_report

        notice(None, self_report(_handle.tracer_provider.service.resource if _handle else None, fd))


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
    _shutdown(SystemExit(128 + number))
    os.kill(os.getpid(), number)

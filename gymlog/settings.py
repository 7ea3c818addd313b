"""Every setting in one table: its variables, what they accept, its default and what it means.

A process reads its settings through this table, `gymlog config` explains them by it, and the
README's table is held against it. A process whose telemetry is off imports this, so it stays light:
defaults that other rooms define too stand here once more, and a test holds them together.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from gymlog.environment import (
    GYM_PREFIX,
    NotAcceptedError,
    as_bool,
    as_choice,
    as_choices,
    as_count,
    as_number,
    as_specified_bool,
    as_text,
    read,
    variables_of,
)

__all__ = [
    "ATTRIBUTE_COUNT_LIMIT",
    "EVENT_ATTRIBUTE_COUNT_LIMIT",
    "EVENT_COUNT_LIMIT",
    "EVENT_LOOP_STALL_SECONDS",
    "FIELDS",
    "HANDLE_SIGTERM",
    "HTTP_ATTRIBUTES",
    "KEEP_ERRORS",
    "LINE_MAX_BYTES",
    "LINK_ATTRIBUTE_COUNT_LIMIT",
    "LINK_COUNT_LIMIT",
    "METRICS_EXEMPLAR_FILTER",
    "METRIC_EXPORT_INTERVAL",
    "METRIC_EXPORT_TIMEOUT",
    "OTLP_BATCHES",
    "OTLP_PROTOCOLS",
    "OTLP_TIMEOUTS",
    "PROCESS_INTERVAL_SECONDS",
    "PROPAGATE_TO",
    "RESOURCE_ATTRIBUTES",
    "SAMPLER",
    "SAMPLERS",
    "SAMPLER_ARGUMENT",
    "SDK_DISABLED",
    "SETTINGS",
    "SILENT_SCOPES",
    "SPAN_START_AFTER_SECONDS",
    "TRACE_HEALTH",
    "VALUE_LENGTH_LIMIT",
    "VERBOSE",
    "WRITE_WAIT_SECONDS",
    "BatchSettings",
    "Ignored",
    "Setting",
]

T = TypeVar("T")


class Ignored(NamedTuple):
    """A variable whose value is not accepted."""

    variable: str
    text: str
    accepted: str


class Setting(NamedTuple, Generic[T]):  # a dataclass would load `inspect` into every process
    """One setting of a process."""

    variables: tuple[str, ...]
    """Its variables, the one that counts first."""
    parse: Callable[[str], T]
    meaning: str
    default: T
    is_secret: bool = False
    """Whether its value must not be shown."""
    takes_blank: bool = False
    """Whether a blank value is a value; else it counts as unset."""

    @property
    def name(self) -> str:
        """The variable that counts first, by which the setting is known."""
        return self.variables[0]

    def find(self, environ: Mapping[str, str] | None = None) -> tuple[T, str] | None:
        """Return what the environment sets and the variable that does, None when none does.

        A value that is not accepted is told on stderr, and the next variable counts.
        """
        environ = os.environ if environ is None else environ
        for variable in self.variables:
            if self.takes_blank and variable in environ and not environ[variable].strip():
                return self.parse(""), variable
            value = read(variable, self.parse, environ)
            if value is not None:
                return value, variable
        return None

    def value(self, environ: Mapping[str, str] | None = None) -> T:
        """Return what the environment sets, else the default."""
        found = self.find(environ)
        return self.default if found is None else found[0]

    def ignored(self, environ: Mapping[str, str]) -> list[Ignored]:
        """Return the variables whose value is not accepted."""
        found = []
        for variable in self.variables:
            text = environ.get(variable, "").strip()
            try:
                if text:
                    self.parse(text)
            except NotAcceptedError as error:
                found.append(Ignored(variable, text, str(error)))
        return found


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        raise NotAcceptedError("a number from 0 to 1")
    return ratio


def _at_least_one(text: str) -> int:
    count = as_count(text)
    if not count:
        raise NotAcceptedError("a whole number, 1 or more")
    return count


_SECONDS: Final = as_number(above=0)

FIELDS: Final[dict[str, Setting[Any]]] = {  # Any: of whichever type the field has
    "enabled": Setting(variables_of("ENABLED"), as_bool, "the switch", default=False),
    "span_groups": Setting(
        variables_of("SPAN_GROUPS"), as_text, "presets and groups, with commas", default="default"
    ),
    "run_id": Setting(
        variables_of("RUN_ID"),
        as_text,
        "nemo.run.id, shared by the processes of a run",
        default=None,
    ),
    "service_name": Setting(("OTEL_SERVICE_NAME",), as_text, "service.name", default="nemo-gym"),
    "service_name_per_server": Setting(
        variables_of("SERVICE_NAME_PER_SERVER"),
        as_bool,
        "append the server's name to service.name",
        default=True,
    ),
    "traces_enabled": Setting(variables_of("TRACES_ENABLED"), as_bool, "write spans", default=True),
    "metrics_enabled": Setting(
        variables_of("METRICS_ENABLED"), as_bool, "write metrics", default=True
    ),
    "logs_enabled": Setting(
        variables_of("LOGS_ENABLED"), as_bool, "write the program's log records", default=False
    ),
    "exporter": Setting(
        variables_of("EXPORTER"),
        as_choices("console", "otlp"),
        "where records go",
        default="console",
    ),
    "otlp_endpoint": Setting(
        ("OTEL_EXPORTER_OTLP_ENDPOINT",), as_text, "where an OTLP exporter sends", default=None
    ),
    "otlp_protocol": Setting(
        ("OTEL_EXPORTER_OTLP_PROTOCOL",), as_text, "grpc or http/protobuf", default=None
    ),
    "otlp_headers": Setting(
        ("OTEL_EXPORTER_OTLP_HEADERS",), as_text, "headers of OTLP", default=None, is_secret=True
    ),
    "event_loop_sample_interval_seconds": Setting(
        variables_of("EVENT_LOOP_SAMPLE_INTERVAL_SECONDS"),
        _SECONDS,
        "between samples of event-loop lag",
        default=1.0,
    ),
    "event_loop_task_count": Setting(
        variables_of("EVENT_LOOP_TASK_COUNT"),
        as_bool,
        "count the tasks of the loop too",
        default=False,
    ),
    "memory_profiling.enabled": Setting(
        (f"{GYM_PREFIX}MEMORY_PROFILING_ENABLED",), as_bool, "sample memory", default=False
    ),
    "memory_profiling.interval_seconds": Setting(
        (f"{GYM_PREFIX}MEMORY_PROFILING_INTERVAL_SECONDS",),
        _SECONDS,
        "between samples of memory",
        default=1.0,
    ),
}
"""Field of TelemetryConfig -> its setting; a dot leads into a field of the field."""

SPAN_START_AFTER_SECONDS: Final = Setting(
    ("GYMLOG_SPAN_START_AFTER_SECONDS",),
    as_number(),
    "when an open span gets its span_start line; 0 at once, negative never",
    default=5.0,
)
PROCESS_INTERVAL_SECONDS: Final = Setting(
    ("GYMLOG_PROCESS_INTERVAL_SECONDS",), _SECONDS, "between process lines", default=30.0
)
LINE_MAX_BYTES: Final = Setting(
    ("GYMLOG_LINE_MAX_BYTES",),
    as_number(4096),
    "a longer line has its largest values cut",
    default=65_536.0,
)
WRITE_WAIT_SECONDS: Final = Setting(
    ("GYMLOG_WRITE_WAIT_SECONDS",),
    as_number(0),
    "how long a full pipe may hold up the program before lines are dropped",
    default=0.25,
)
EVENT_LOOP_STALL_SECONDS: Final = Setting(
    ("GYMLOG_EVENT_LOOP_STALL_SECONDS",),
    as_number(),
    "how long an event loop may not run before a log line says where it is stuck; 0 never",
    default=1.0,
)
PROPAGATE_TO: Final = Setting(
    ("GYMLOG_PROPAGATE_TO",),
    as_text,
    "hosts that get the trace context besides the fleet's own addresses",
    default="",
)
TRACE_HEALTH: Final = Setting(
    ("GYMLOG_TRACE_HEALTH",), as_bool, "spans of GET / and GET /health* too", default=False
)
HTTP_ATTRIBUTES: Final = Setting(
    ("GYMLOG_HTTP_ATTRIBUTES",),
    as_choice("lean", "full"),
    "full repeats what other attributes of a span say already",
    default="lean",
)
SILENT_SCOPES: Final = Setting(
    ("GYMLOG_SILENT_SCOPES",),
    _names,
    "instrumentation scopes that get no spans",
    default=frozenset({"fastapi"}),
    takes_blank=True,
)
HANDLE_SIGTERM: Final = Setting(
    ("GYMLOG_HANDLE_SIGTERM",),
    as_bool,
    "write what is open when SIGTERM would end the process at once",
    default=True,
)
KEEP_ERRORS: Final = Setting(
    ("GYMLOG_KEEP_ERRORS",),
    as_bool,
    "write a span that ends in an error also when its trace is not sampled",
    default=False,
)
VERBOSE: Final = Setting[bool | None](
    ("GYMLOG_VERBOSE",),
    as_bool,
    "say at the start, in one sentence on stderr, what is on; unset: on a terminal only",
    default=None,
)

SDK_DISABLED: Final = Setting(
    ("OTEL_SDK_DISABLED",), as_specified_bool, "off, whatever the switch says", default=False
)
RESOURCE_ATTRIBUTES: Final = Setting(
    ("OTEL_RESOURCE_ATTRIBUTES",),
    as_text,
    "attributes of the process: key=value, with commas",
    default="",
)

SAMPLERS: Final = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)
SAMPLER: Final = Setting(
    ("OTEL_TRACES_SAMPLER",),
    as_choice(*SAMPLERS),
    "which traces are recorded",
    default="parentbased_always_on",
)
SAMPLER_ARGUMENT: Final = Setting(
    ("OTEL_TRACES_SAMPLER_ARG",), _ratio, "the share of traces of a ratio sampler", default=1.0
)

METRIC_EXPORT_INTERVAL: Final = Setting(
    ("OTEL_METRIC_EXPORT_INTERVAL",),
    as_number(above=0),
    "milliseconds between collections of metrics",
    default=10_000.0,
)
METRIC_EXPORT_TIMEOUT: Final = Setting(
    ("OTEL_METRIC_EXPORT_TIMEOUT",),
    as_number(above=0),
    "milliseconds that a collection of metrics may take",
    default=30_000.0,
)
METRICS_EXEMPLAR_FILTER: Final = Setting(
    ("OTEL_METRICS_EXEMPLAR_FILTER",),
    as_choice("always_on", "always_off", "trace_based"),
    "which measurements may lead to their trace",
    default="trace_based",
)

_ANY_COUNT: Final = "OTEL_ATTRIBUTE_COUNT_LIMIT"

VALUE_LENGTH_LIMIT: Final = Setting(
    ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
    as_count,
    "characters of a value",
    default=8_192,
)
ATTRIBUTE_COUNT_LIMIT: Final = Setting(
    ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", _ANY_COUNT), as_count, "attributes of a span", default=128
)
EVENT_COUNT_LIMIT: Final = Setting(
    ("OTEL_SPAN_EVENT_COUNT_LIMIT",), as_count, "events of a span", default=128
)
LINK_COUNT_LIMIT: Final = Setting(
    ("OTEL_SPAN_LINK_COUNT_LIMIT",), as_count, "links of a span", default=128
)
EVENT_ATTRIBUTE_COUNT_LIMIT: Final = Setting(
    ("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", _ANY_COUNT),
    as_count,
    "attributes of an event",
    default=128,
)
LINK_ATTRIBUTE_COUNT_LIMIT: Final = Setting(
    ("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", _ANY_COUNT), as_count, "attributes of a link", default=128
)

OTLP_PROTOCOLS: Final = {
    signal: Setting(
        (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"),
        as_choice("grpc", "http/protobuf"),
        f"how {signal} are sent over OTLP",
        default="grpc",
    )
    for signal in ("traces", "metrics", "logs")
}
"""By signal."""

OTLP_TIMEOUTS: Final = {
    signal: Setting(
        (f"OTEL_EXPORTER_OTLP_{signal.upper()}_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"),
        _SECONDS,
        f"seconds that a request with {signal} may take, retries included",
        default=10.0,
    )
    for signal in ("traces", "metrics", "logs")
}
"""By signal; in seconds, as OpenTelemetry's exporters for Python take them."""


class BatchSettings(NamedTuple):
    """How records of one signal wait, and go together."""

    max_queue_size: Setting[int]
    max_export_batch_size: Setting[int]
    schedule_delay_ms: Setting[float]
    export_timeout_ms: Setting[float]


def _batches(prefix: str, what: str, delay_ms: float) -> BatchSettings:
    return BatchSettings(
        Setting(
            (f"OTEL_{prefix}_MAX_QUEUE_SIZE",),
            _at_least_one,
            f"{what} that may wait for OTLP; further ones are dropped and counted",
            default=2048,
        ),
        Setting(
            (f"OTEL_{prefix}_MAX_EXPORT_BATCH_SIZE",),
            _at_least_one,
            f"{what} of an OTLP request at most",
            default=512,
        ),
        Setting(
            (f"OTEL_{prefix}_SCHEDULE_DELAY",),
            as_number(0),
            f"ms after which {what} are sent even if they fill no request",
            default=delay_ms,
        ),
        Setting(
            (f"OTEL_{prefix}_EXPORT_TIMEOUT",),
            _SECONDS,
            f"ms that a request with {what} may take, where the exporter's timeout is longer",
            default=30_000.0,
        ),
    )


OTLP_BATCHES: Final = {
    "traces": _batches("BSP", "spans", 5_000.0),
    "logs": _batches("BLRP", "log records", 1_000.0),
}
"""By signal."""

SETTINGS: Final[tuple[Setting[Any], ...]] = (  # Any: of whichever type each has
    *FIELDS.values(),
    SPAN_START_AFTER_SECONDS,
    PROCESS_INTERVAL_SECONDS,
    LINE_MAX_BYTES,
    WRITE_WAIT_SECONDS,
    EVENT_LOOP_STALL_SECONDS,
    PROPAGATE_TO,
    TRACE_HEALTH,
    HTTP_ATTRIBUTES,
    SILENT_SCOPES,
    HANDLE_SIGTERM,
    KEEP_ERRORS,
    VERBOSE,
    SDK_DISABLED,
    RESOURCE_ATTRIBUTES,
    SAMPLER,
    SAMPLER_ARGUMENT,
    METRIC_EXPORT_INTERVAL,
    METRIC_EXPORT_TIMEOUT,
    METRICS_EXEMPLAR_FILTER,
    VALUE_LENGTH_LIMIT,
    ATTRIBUTE_COUNT_LIMIT,
    EVENT_COUNT_LIMIT,
    LINK_COUNT_LIMIT,
    EVENT_ATTRIBUTE_COUNT_LIMIT,
    LINK_ATTRIBUTE_COUNT_LIMIT,
    *OTLP_PROTOCOLS.values(),
    *OTLP_TIMEOUTS.values(),
    *OTLP_BATCHES["traces"],
    *OTLP_BATCHES["logs"],
)

"""The metrics that gymlog itself measures, and whether they are on.

They are on or off for themselves, whatever span groups are open: a call site tests `are_on`. Names
are NeMo Gym's published ones (their unit is in the name) and OpenTelemetry's. No attribute has
more than a few values: never a path, never a rollout. Reward and accuracy are never measured.
Buckets reach an hour. Standard library only.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from gymlog import clock
from gymlog.metrics.harvest import forget_measurements
from gymlog.metrics.series import (
    Counter,
    Histogram,
    Key,
    Share,
    UpDownCounter,
)
from gymlog.semconv import (
    CONCURRENCY_SITE,
    CONNECTION_POOL_QUEUE_CONSTRAINT,
    CONNECTION_POOL_QUEUE_OUTCOME,
    DESTINATION_SERVER_NAME,
    ERROR_TYPE,
    HTTP_INTERNAL,
    HTTP_REQUEST_METHOD,
    HTTP_RESPONSE_STATUS_CODE,
    HTTP_RETRY_REASON,
    HTTP_ROUTE,
    MODEL_DIALECT,
    ROLLOUT_OUTCOME,
    SERVER_ADDRESS,
    SERVER_NAME,
    SERVER_PORT,
    URL_SCHEME,
)

__all__ = [
    "CONNECTION_POOL_CONNECTS",
    "CONNECTION_POOL_QUEUE_DURATION",
    "HTTP_CLIENT_DURATION",
    "HTTP_RETRIES",
    "HTTP_SERVER_ACTIVE_REQUESTS",
    "HTTP_SERVER_DURATION",
    "HTTP_TIMEOUTS",
    "MODEL_CALL_DURATION",
    "MODEL_TIME_TO_FIRST_BYTE",
    "QUEUE_WAIT_DURATION",
    "ROLLOUTS_COMPLETED",
    "ROLLOUT_DURATION",
    "VERIFY_DURATION",
    "VERIFY_SUCCESS_RATE",
    "are_on",
    "switch",
    "timed",
]

are_on = False
"""Whether call sites measure; read as `instruments.are_on`, set by `switch`."""


def switch(*, on: bool) -> None:
    """Let call sites measure, from nothing on, or no longer."""
    global are_on
    if on and not are_on:
        forget_measurements()
    are_on = on


_SECONDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
    30, 60, 120, 300, 600, 1_800, 3_600,
)  # fmt: skip
"""Those of OpenTelemetry's HTTP conventions, and on to an hour."""

_MILLISECONDS: Final = tuple(round(seconds * 1_000) for seconds in _SECONDS)
_QUEUE_MILLISECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1, *_MILLISECONDS)


def _destination(key: Key) -> dict[str, Any]:  # Any: one JSON value
    """Return the attributes of a request to `key[1]`, which is `host:port` as a URL has it."""
    method, authority, status, error_type = key
    host, colon, port = authority.rpartition("@")[2].rpartition(":")
    if not colon or not port.isdigit():  # no port, or the end of a bare IPv6 address
        host, port = host + colon + port, ""
    attributes: dict[str, Any] = {  # Any: one JSON value
        HTTP_REQUEST_METHOD: method,
        SERVER_ADDRESS: host.strip("[]") or None,
        SERVER_PORT: int(port) if port else None,
        HTTP_RESPONSE_STATUS_CODE: status,
        ERROR_TYPE: error_type,
    }
    return {name: value for name, value in attributes.items() if value is not None}


HTTP_SERVER_DURATION: Final = Histogram(
    "http.server.request.duration",
    "s",
    "Duration of HTTP requests that were served, to the last byte of the response.",
    (HTTP_REQUEST_METHOD, URL_SCHEME, HTTP_ROUTE, HTTP_RESPONSE_STATUS_CODE, ERROR_TYPE),
    bounds=_SECONDS,
)
HTTP_SERVER_ACTIVE_REQUESTS: Final = UpDownCounter(
    "http.server.active_requests",
    "{request}",
    "HTTP requests that are being served.",
    (HTTP_REQUEST_METHOD, URL_SCHEME),
)
HTTP_CLIENT_DURATION: Final = Histogram(
    "http.client.request.duration",
    "s",
    "Duration of HTTP requests that were made, with their retries, to the last byte of the answer.",
    (
        HTTP_REQUEST_METHOD,
        SERVER_ADDRESS,
        SERVER_PORT,
        HTTP_RESPONSE_STATUS_CODE,
        ERROR_TYPE,
    ),
    bounds=_SECONDS,
    attributes=_destination,
)
HTTP_RETRIES: Final = Counter(
    "gym.http.retry_total", "1", "Requests that were sent again.", (HTTP_RETRY_REASON,)
)
HTTP_TIMEOUTS: Final = Counter(
    "gym.http.timeout_total", "1", "Tries of requests that timed out.", (HTTP_INTERNAL,)
)
CONNECTION_POOL_QUEUE_DURATION: Final = Histogram(
    "gym.http.connection_pool.queue_duration_ms",
    "ms",
    "How long requests waited for a connection; those that did not wait are left out.",
    (CONNECTION_POOL_QUEUE_CONSTRAINT, CONNECTION_POOL_QUEUE_OUTCOME, DESTINATION_SERVER_NAME),
    bounds=_QUEUE_MILLISECONDS,
)
CONNECTION_POOL_CONNECTS: Final = Counter(
    "gym.http.connection_pool.connect_total",
    "{connection}",
    "Connections that were opened or could not be.",
    (DESTINATION_SERVER_NAME,),
)
QUEUE_WAIT_DURATION: Final = Histogram(
    "gym.concurrency.queue_wait_duration_ms",
    "ms",
    "How long work waited until a limit on concurrency let it begin.",
    (CONCURRENCY_SITE,),
    bounds=_QUEUE_MILLISECONDS,
)
ROLLOUT_DURATION: Final = Histogram(
    "gym.rollout.duration_ms",
    "ms",
    "Duration of rollouts in the agent server.",
    (ERROR_TYPE,),
    bounds=_MILLISECONDS,
)
ROLLOUTS_COMPLETED: Final = Counter(
    "gym.rollout.completed_total", "1", "Rollouts that ended.", (ROLLOUT_OUTCOME,)
)
VERIFY_DURATION: Final = Histogram(
    "gym.verify.duration_ms",
    "ms",
    "Duration of verifications.",
    (ERROR_TYPE,),
    bounds=_MILLISECONDS,
)
VERIFY_SUCCESS_RATE: Final = Share(
    "gym.verify.success_rate",
    "1",
    "Share of verify calls that completed, since the process began.",
)
MODEL_CALL_DURATION: Final = Histogram(
    "gym.model.call_duration_ms",
    "ms",
    "Duration of model calls, to the last byte of the answer.",
    (MODEL_DIALECT, SERVER_NAME, ERROR_TYPE),
    bounds=_MILLISECONDS,
)
MODEL_TIME_TO_FIRST_BYTE: Final = Histogram(
    "gym.model.time_to_first_byte_ms",
    "ms",
    "Time until the first byte of a model's answer.",
    (MODEL_DIALECT, SERVER_NAME),
    bounds=_MILLISECONDS,
)


_OFF: Final = nullcontext()


def timed(
    histogram: Histogram, *key: object, share: Share | None = None
) -> AbstractContextManager[None]:
    """Measure how long a block takes; `error.type`, the last key, is what left it, or None.

    `share`, when given, counts blocks that were completed. Does nothing while metrics are off.
    """
    return _Timed(histogram, key, share) if are_on else _OFF


class _Timed:
    __slots__ = ("_histogram", "_key", "_share", "_start")

    def __init__(self, histogram: Histogram, key: tuple[object, ...], share: Share | None) -> None:
        self._histogram = histogram
        self._key = key
        self._share = share

    def __enter__(self) -> None:
        self._start = clock.monotonic_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        error_type = None if kind is None else kind.__qualname__
        self._histogram.record_since(self._start, (*self._key, error_type))
        if self._share is not None:
            self._share.count(is_hit=kind is None)

"""An export from rows to an account: how many spans arrived, which did not, and why.

A refused request is sent again in halves, so that one span too large for the receiver does not take
its neighbours along. When nothing would arrive any more (nobody there, not allowed in), the export
ends at once: it waits one timeout at most, not one for each request.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reconstruct.errors import UsageError
from reconstruct.export.otlp.batches import Item, item, packed, request
from reconstruct.export.otlp.encoding import Unsendable
from reconstruct.export.otlp.receiver import Receiver

__all__ = ["Account", "Protocol", "Unsent", "connect", "export"]

Protocol = Literal["grpc", "http/protobuf"]
Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds

_HOPELESS: Final = 16
"""So many spans refused one by one, and none taken: the receiver wants none of them."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """A span that did not arrive, and the receiver's or our words for it."""

    trace_id: str
    span_id: str
    words: str


@dataclass(slots=True)
class Account:
    """What became of the spans."""

    total: int = 0
    sent: int = 0
    requests: int = 0
    """Requests that were taken."""
    unsent: list[Unsent] = field(default_factory=list)
    """Spans known to have been refused, each by itself."""
    stopped: str = ""
    """Why the export ended early."""
    remarks: list[str] = field(default_factory=list)
    """What the receiver said beside 'taken'."""

    @property
    def not_sent(self) -> int:
        """Spans that did not arrive, whether or not it is known which."""
        return self.total - self.sent


def connect(
    protocol: Protocol,
    *,
    endpoint: str | None = None,
    headers: Mapping[str, str] | None = None,
    insecure: bool | None = None,
    timeout: float | None = None,
    compression: str | None = None,
) -> Receiver:
    """Set up the way to a receiver; what is None is left to the OTEL_EXPORTER_OTLP_* variables.

    Nothing is sent yet. Raises `UsageError` when an argument or a variable makes no sense.
    """
    with _exporter_complaints() as complaints:
        try:
            receiver = _receiver(
                protocol,
                endpoint=endpoint,
                headers=headers,
                insecure=insecure,
                timeout=timeout,
                compression=compression,
            )
        except (ValueError, OSError, KeyError) as error:
            raise _senseless(protocol, str(error)) from error
    if complaints:
        receiver.close()
        raise _senseless(protocol, "; ".join(complaints))
    return receiver


def _senseless(protocol: str, words: str) -> UsageError:
    return UsageError(
        f"cannot set up {protocol}: {words}; check the options and the OTEL_EXPORTER_OTLP_* "
        "variables"
    )


def _receiver(
    protocol: Protocol,
    *,
    endpoint: str | None,
    headers: Mapping[str, str] | None,
    insecure: bool | None,
    timeout: float | None,
    compression: str | None,
) -> Receiver:
    # Each is imported when it is used: together they take a second and a half.
    if protocol == "grpc":
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else it writes to stderr by itself
        from reconstruct.export.otlp.over_grpc import GrpcReceiver

        return GrpcReceiver(
            endpoint=endpoint,
            headers=headers,
            insecure=insecure,
            timeout=timeout,
            compression=compression,
        )
    from reconstruct.export.otlp.over_http import HttpReceiver

    return HttpReceiver(
        endpoint=endpoint, headers=headers, timeout=timeout, compression=compression
    )


@contextmanager
def _exporter_complaints() -> Iterator[list[str]]:
    """Collect what OpenTelemetry logs while it is set up, and keep it off stderr for good."""
    complaints: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            complaints.append(record.getMessage())

    logger, listener = logging.getLogger("opentelemetry"), Listener(logging.WARNING)
    logger.addHandler(listener)
    try:
        yield complaints
    finally:
        logger.addHandler(logging.NullHandler())
        logger.removeHandler(listener)


def export(
    receiver: Receiver,
    rows: Iterable[Row],
    *,
    progress: Callable[[int], None] | None = None,
) -> Account:
    """Send finished spans; `progress` is told how many have been dealt with so far."""
    account = Account()
    rows = iter(rows)
    for batch in packed(_items(rows, account)):
        _send(receiver, batch, account)
        if account.stopped:
            account.total += sum(1 for _ in rows)
            break
        if progress is not None:
            progress(account.total)
    return account


def _items(rows: Iterator[Row], account: Account) -> Iterator[Item]:
    for row in rows:
        account.total += 1
        try:
            yield item(row)
        except Unsendable as error:
            account.unsent.append(
                Unsent(row["trace_id"], row["span_id"], f"not to be said in OTLP: {error}")
            )


def _send(receiver: Receiver, batch: list[Item], account: Account) -> None:
    waiting = [batch]
    while waiting and not account.stopped:
        part = waiting.pop()
        answer = receiver.send(request(part), len(part))
        if answer.outcome == "taken":
            account.requests += 1
            account.sent += len(part) - answer.rejected_spans
            if answer.words and answer.words not in account.remarks:
                account.remarks.append(answer.words)
        elif answer.outcome == "failed":
            account.stopped = answer.words
        elif len(part) > 1:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
        else:
            account.unsent.append(Unsent(part[0].trace_id, part[0].span_id, answer.words))
            if not account.sent and len(account.unsent) >= _HOPELESS:
                account.stopped = answer.words

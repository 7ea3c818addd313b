"""Records to a receiver: packed by bytes, tried again where that may help, accounted for.

A refused request is sent again in halves, so that one record too large for the receiver does not
take its neighbours along. A batch is tried for its timeout in all: exponential waits with jitter,
or what the receiver asks for where that still fits. Then the export ends.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from reconstruct.export.otlp.forms import Form, Item
from reconstruct.export.otlp.records import Records, Unsent
from reconstruct.export.otlp.transport import Answer, Transport

__all__ = ["REQUEST_BYTES", "REQUEST_RECORDS", "Account", "Memory", "packed", "send_all"]

REQUEST_BYTES: Final = 1_000_000
"""Encoded bytes of a request before compression; some proxies refuse more than 1 MiB."""
REQUEST_RECORDS: Final = 10_000

_FRAME_BYTES: Final = 16
_FIRST_WAIT_SECONDS: Final = 0.2
_LONGEST_WAIT_SECONDS: Final = 5.0
_HOPELESS: Final = 16
"""So many records refused one by one, and none taken: the receiver wants none of them."""


class Memory(Protocol):
    """What remembers the keys of records that arrived."""

    def add(self, keys: Sequence[int]) -> None:
        """Note that records arrived; raises `OSError`."""
        ...


@dataclass(slots=True)
class Account:
    """What became of a signal's records."""

    sent: int = 0
    requests: int = 0
    """Requests that were taken."""
    rejected: int = 0
    """Records that the receiver took and threw away, by its own count."""
    unsent: list[Unsent] = field(default_factory=list)
    """Records known to have been refused, each by itself."""
    stopped: str = ""
    """Why the export of this signal ended early."""
    is_unreachable: bool = False
    """It ended because nothing came back in time: no other signal would fare better."""
    is_unsupported: bool = False
    """The receiver takes no records of this signal."""
    remarks: list[str] = field(default_factory=list)
    """What the receiver said beside 'taken', and what could not be noted."""


def packed(
    items: Iterable[Item], form: Form, *, limit: int = REQUEST_BYTES, most: int = REQUEST_RECORDS
) -> Iterator[list[Item]]:
    """Cut items, in their order, into lists whose request has at most `limit` bytes.

    An item that is larger stands alone.
    """
    batch: list[Item] = []
    owners: set[object] = set()
    size = 0
    for item in items:
        added = len(item.body) + _FRAME_BYTES + _owner_bytes(item, owners, form)
        if batch and (size + added > limit or len(batch) >= most):
            yield batch
            batch, owners, size = [], set(), 0
            added = len(item.body) + _FRAME_BYTES + _owner_bytes(item, owners, form)
        batch.append(item)
        owners.add(item.owner)
        owners.add(item.owner[0])
        size += added
    if batch:
        yield batch


def _owner_bytes(item: Item, owners: set[object], form: Form) -> int:
    if item.owner in owners:
        return 0
    resource, scope = form.owner_bytes(item.owner)
    return scope if item.owner[0] in owners else resource + scope


def send_all(
    batches: Iterable[list[Item]],
    transport: Transport,
    form: Form,
    records: Records,
    *,
    timeout: float,
    memory: Memory | None = None,
    progress: Callable[[int], None] | None = None,
    account: Account,
) -> None:
    """Send batches until they are through or nothing more would arrive; fills `account`.

    `timeout` is seconds for a batch, further tries included. `progress` is told how many records
    have been read.
    """
    for batch in batches:
        waiting = [batch]
        while waiting:
            part = waiting.pop()
            answer = _persistent(transport, form.request(part), timeout)
            if answer.outcome == "taken":
                _note_taken(account, part, answer, memory)
            elif answer.outcome != "refused":
                account.stopped = answer.words
                account.is_unreachable = answer.outcome == "busy"
                account.is_unsupported = answer.outcome == "unsupported"
                return
            elif len(part) > 1:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
            else:
                account.unsent.append(Unsent(records.words(part[0].name), answer.words))
                if not account.sent and len(account.unsent) >= _HOPELESS:
                    account.stopped = answer.words
                    return
        if progress is not None:
            progress(records.total)


def _note_taken(
    account: Account, part: Sequence[Item], answer: Answer, memory: Memory | None
) -> None:
    account.requests += 1
    account.sent += len(part) - answer.rejected
    account.rejected += answer.rejected
    remarks = [answer.words] if answer.words else []
    if memory is not None:
        try:
            memory.add([item.key for item in part])
        except OSError as error:
            remarks.append(f"cannot note what arrived, so it may go again: {error.strerror}")
    account.remarks += [words for words in remarks if words not in account.remarks]


def _persistent(transport: Transport, request: bytes, timeout: float) -> Answer:
    deadline = time.monotonic() + timeout
    wait = _FIRST_WAIT_SECONDS
    tries = 0
    while True:
        answer = transport.send(request, max(deadline - time.monotonic(), 0.001))
        tries += 1
        if answer.outcome != "busy":
            return answer
        pause = answer.wait_seconds
        if pause is None:
            pause = wait * random.uniform(0.5, 1.5)
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        if time.monotonic() + pause >= deadline:
            return Answer("busy", _given_up(answer, tries, timeout))
        time.sleep(pause)


def _given_up(answer: Answer, tries: int, timeout: float) -> str:
    words = answer.words
    if answer.wait_seconds:
        words += f"; it asks to wait {answer.wait_seconds:g} s"
    if "--timeout" in words:
        return words
    often = "once" if tries == 1 else f"{tries} times"
    return f"{words}; tried {often} within {timeout:g} s, --timeout SECONDS tries longer"

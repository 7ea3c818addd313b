"""Who wrote the lines: each resource once, numbered.

All lines of a process state the same resource, so a line keeps its owner's number alone.
"""

from collections.abc import Iterable, Iterator
from threading import Lock
from typing import NamedTuple

__all__ = ["Owner", "Owners"]


class Owner(NamedTuple):
    """A resource as JSON text, and its attributes that are asked for most.

    `instance` tells processes apart where `service.instance.id` alone does not.
    """

    resource: str
    instance: str
    service_name: str | None
    service_instance_id: str | None
    server_name: str | None
    server_type: str | None
    run_id: str | None
    host_name: str | None
    process_pid: int | None
    boot_id: str | None

    def of_process(self, host_name: str | None, process_pid: int | None) -> "Owner":
        """Return the owner when what stood before the line names host or pid.

        One that names its instance or its process itself is left as it is.
        """
        if self.service_instance_id is not None or self.process_pid is not None:
            return self
        pid = "" if process_pid is None else process_pid
        return self._replace(
            instance=f"{self.instance}#{host_name or ''}#{pid}",
            host_name=host_name if self.host_name is None else self.host_name,
            process_pid=process_pid,
        )


class Owners:
    """The numbers of owners, from 1; `known` have theirs already. Any thread may ask."""

    __slots__ = ("_last", "_lock", "_new", "_numbers")

    def __init__(self, known: Iterable[tuple[int, Owner]] = ()) -> None:
        self._numbers = {owner: number for number, owner in known}
        self._last = max(self._numbers.values(), default=0)
        self._new: list[tuple[int, Owner]] = []
        self._lock = Lock()

    def number(self, owner: Owner) -> int:
        """Return the owner's number, a new one where it is new."""
        number = self._numbers.get(owner)
        return self._next(owner) if number is None else number

    def _next(self, owner: Owner) -> int:
        with self._lock:
            number = self._numbers.get(owner)
            if number is None:  # no other thread gave it one meanwhile
                self._last += 1
                number = self._numbers[owner] = self._last
                self._new.append((number, owner))
        return number

    def take_new(self) -> Iterator[tuple[int, Owner]]:
        """Yield those that got their number since this was last asked."""
        new, self._new = self._new, []
        yield from new

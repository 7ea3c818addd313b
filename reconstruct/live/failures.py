"""Which spans fail, by service and route: how many, and the last of each kind."""

from dataclasses import replace
from typing import Final

from reconstruct.live.snapshot import FailureKind

__all__ = ["Failures"]

_KINDS: Final = 500


class Failures:
    """Counts of spans with status ERROR. The kinds that failed last are told apart, 500 of them."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str | None, str], FailureKind] = {}
        self.count = 0

    def add(self, failure: FailureKind) -> None:
        """Count one failed span."""
        self.count += 1
        key = failure.service_name, failure.route
        known = self._kinds.pop(key, None)
        if known is not None:
            is_later = failure.last_time_unix_nano >= known.last_time_unix_nano
            failure = replace(failure if is_later else known, count=known.count + 1)
        self._kinds[key] = failure
        if len(self._kinds) > _KINDS:
            del self._kinds[next(iter(self._kinds))]

    def latest(self, limit: int | None) -> tuple[FailureKind, ...]:
        """Describe the kinds, the one that failed last first."""
        found = sorted(
            self._kinds.values(),
            key=lambda it: (-it.last_time_unix_nano, it.service_name or "", it.route),
        )
        return tuple(found[:limit])

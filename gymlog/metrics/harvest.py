"""What a reader of metrics is still to get: collected from the instruments, once for all readers.

A reader that wants differences (DELTA) gets what was measured since its last collection, another
one what was measured ever (CUMULATIVE). Off the request path. Standard library only.
"""

import copy
import threading
import weakref

from gymlog import clock
from gymlog.metrics.points import Stream
from gymlog.metrics.series import Distribution, Instrument, Key, State, instruments

__all__ = ["Harvest", "forget_measurements"]


class Harvest:
    """What one reader is still to get."""

    def __init__(self, *, is_delta: bool, has_exemplars: bool = True) -> None:
        self._is_delta = is_delta
        self._has_exemplars = has_exemplars
        self._states: dict[Instrument, dict[Key, State]] = {}
        self._since = self._start = clock.now()
        _harvests.add(self)

    def collect(self) -> list[Stream]:
        """Return what was measured, by instrument, in the order in which these were made."""
        with _lock:
            _distribute()
            now = clock.now()
            streams = [self._stream(one, now) for one in instruments if one in self._states]
            self._since = now
            return streams

    def take(self, instrument: Instrument, key: Key, state: State) -> None:
        """Add what was measured."""
        if not self._has_exemplars and isinstance(state, Distribution):
            state.exemplars = ()
        states = self._states.setdefault(instrument, {})
        present = states.get(key)
        if present is None:
            states[key] = state
        else:
            present.merge(state)

    def _stream(self, instrument: Instrument, now: int) -> Stream:
        states = self._states[instrument]
        is_delta = self._is_delta and not instrument.is_always_cumulative
        if is_delta:
            del self._states[instrument]
        start = self._since if is_delta else self._start
        points = [
            instrument.point(instrument.attributes_of(key), state, start, now)
            for key, state in states.items()
        ]
        for state in states.values():
            if isinstance(state, Distribution):
                state.exemplars = ()  # they are told once, in a CUMULATIVE series too
        return Stream(
            instrument.name,
            instrument.description,
            instrument.unit,
            instrument.type,
            instrument.is_monotonic,
            is_delta,
            points,
        )


_harvests: "weakref.WeakSet[Harvest]" = weakref.WeakSet()
_lock = threading.Lock()
"""Held by readers alone, while they collect."""


def _distribute() -> None:
    """Bring what all cells hold to every harvest."""
    for instrument in instruments:
        for key, cell in list(instrument.cells.items()):
            state = instrument.drain(cell)
            if state is not None:
                for harvest in _harvests:
                    harvest.take(instrument, key, copy.copy(state))


def forget_measurements() -> None:
    """Forget every measurement and harvest: in a forked child, and when metrics are switched on."""
    global _lock, _harvests
    _lock = threading.Lock()
    _harvests = weakref.WeakSet()
    for instrument in instruments:
        instrument.cells = {}

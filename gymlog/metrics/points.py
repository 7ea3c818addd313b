"""Points of metrics as a collection gives them: what a line is made of, or the SDK's own points.

Their fields have the names of OpenTelemetry's SDK, so that what takes ours takes the SDK's too.
Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Exemplar", "HistogramPoint", "NumberPoint", "Stream"]


class Exemplar(NamedTuple):
    """One measurement that leads to a trace."""

    value: float
    time_unix_nano: int
    trace_id: int
    span_id: int


@dataclass(frozen=True, slots=True)
class NumberPoint:
    """A point of a sum or gauge."""

    attributes: Mapping[str, Any]  # Any: one JSON value
    start_time_unix_nano: int | None
    time_unix_nano: int
    value: float
    exemplars: tuple[Exemplar, ...] = ()


@dataclass(frozen=True, slots=True)
class HistogramPoint:
    """A point of a histogram with explicit bounds."""

    attributes: Mapping[str, Any]  # Any: one JSON value
    start_time_unix_nano: int
    time_unix_nano: int
    count: int
    sum: float
    bucket_counts: tuple[int, ...]
    explicit_bounds: tuple[float, ...]
    min: float
    max: float
    exemplars: tuple[Exemplar, ...] = ()


class Stream(NamedTuple):
    """The points of one metric at one collection."""

    name: str
    description: str
    unit: str
    type: str
    """sum, gauge, histogram or exponential_histogram."""
    is_monotonic: bool
    is_delta: bool
    points: list[Any]  # Any: points as above, or the SDK's with the same names

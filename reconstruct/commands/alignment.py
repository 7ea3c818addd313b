"""What `show` says of clocks: which it moved, or that some of the times it draws are off.

The first is asked of the whole run's offsets, the second of the drawn traces alone, since that
needs no other spans to be read.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconstruct.console import Row
from reconstruct.render.text import Line, Part, clean, duration, plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.store.aligning import MovedClock
    from reconstruct.tree import Trace

__all__ = ["aligned_facts", "clock_notice", "moved_clocks", "moves_in_words"]

_TOLD: Final = 4
"""So many clocks are named."""
_MOVED: Final = """
    SELECT DISTINCT clock, reference_clock, offset_ns, uncertainty_ns
    FROM aligned_spans_of($trace_ids)
    WHERE offset_ns IN (SELECT unnest($offsets)) AND offset_ns <> 0
    ORDER BY abs(offset_ns) DESC, offset_ns, clock, uncertainty_ns
"""
_APART: Final = """
    SELECT client.clock AS client_clock, server.clock AS server_clock, bound.apart_ns
    FROM (
        SELECT client_number, server_number,
            quantile_disc((lower_ns + upper_ns) // 2, 0.5) AS apart_ns
        FROM _clock_bounds_of($trace_ids)
        WHERE excluded IS NULL
        GROUP BY client_number, server_number
        HAVING bool_or(upper_ns <= -1000000)
            OR 2 * count(*) FILTER (lower_ns >= 1000000) > count(*)
    ) AS bound
    JOIN _clock_names AS client ON client.number = bound.client_number
    JOIN _clock_names AS server ON server.number = bound.server_number
    ORDER BY abs(apart_ns) DESC, apart_ns, client_clock, server_clock
    LIMIT 1
"""
"""Two clocks whose calls show them to be at least 1 ms apart. That a server ends after its client
says so only if most do: it may have gone on."""


def moved_clocks(engine: "Engine", traces: Sequence["Trace"]) -> Iterator[Line]:
    """Yield which clocks' spans were moved in aligned traces, by how much, give or take what."""
    offsets = {span.offset_ns for trace in traces for span in trace.walk()}
    asked = {"trace_ids": _ids(traces), "offsets": sorted(offsets)}
    moved = engine.rows(_MOVED, asked)
    from reconstruct.store.aligning import MovedClock

    style = "warning" if moved else "quiet"
    for words in moves_in_words([MovedClock(**row) for row in moved]):
        yield (Part(words, style),)


def moves_in_words(moved: "Sequence[MovedClock]") -> Iterator[str]:
    """Yield whose times were moved, by how much, give or take what: a few of them."""
    if not moved:
        yield "aligned: no span had to be moved"
        return
    references = sorted({clock.reference_clock for clock in moved})
    yield f"aligned with {clean(', '.join(references))}"
    for clock in moved[:_TOLD]:
        sign = "+" if clock.offset_ns < 0 else ""
        by = f"{sign}{duration(-clock.offset_ns)} ± {duration(clock.uncertainty_ns)}"
        yield f"{clean(clock.clock)} moved by {by}"
    if len(moved) > _TOLD:
        yield f"… {plural(len(moved) - _TOLD, 'more move')}"


def clock_notice(engine: "Engine", traces: Sequence["Trace"]) -> str | None:
    """Return what to know of these traces' clocks, if any call in them shows two to be apart."""
    for row in engine.rows(_APART, {"trace_ids": _ids(traces)}):
        side = "ahead of" if row["apart_ns"] > 0 else "behind"
        return (
            f"the clock of {row['server_clock']} was about {duration(abs(row['apart_ns']))} "
            f"{side} that of {row['client_clock']}; --align draws spans where they belong"
        )
    return None


def aligned_facts(facts: Row) -> Row:
    """Give an aligned span its times as they are in the logs, and those it was given beside them,
    named as in `aligned_spans`."""
    start, end, offset_ns = (
        facts[name] for name in ("start_time_unix_nano", "end_time_unix_nano", "offset_ns")
    )
    return {
        **facts,
        "start_time_unix_nano": start + offset_ns,
        "end_time_unix_nano": None if end is None else end + offset_ns,
        "start_adj_unix_nano": start,
        "end_adj_unix_nano": end,
    }


def _ids(traces: Iterable["Trace"]) -> list[str]:
    return [trace.trace_id for trace in traces]

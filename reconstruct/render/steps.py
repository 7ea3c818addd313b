"""How one step went, in lines: its figures, what was at work when, which rollouts held it up."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reconstruct.render.bars import Axis
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    count,
    duration,
    fit,
    instant,
    plural,
    short_names,
    wrapped,
)

__all__ = ["buckets", "report"]

Row = Mapping[str, Any]  # Any: as the columns of the relations

_HEADING: Final = 12
_FIGURES: Final = 22
"""Columns of `most 1,204, mean 1,100`."""
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_MIN_ROOM: Final = 20
_TO_COMPARE: Final = 3
"""Of fewer slow rollouts nothing can be said."""


def buckets(columns: int) -> int:
    """Say into how many parts a step's time is cut on so many columns."""
    return max(columns - _HEADING - _FIGURES - 2, _MIN_ROOM)


def report(
    step: Row,
    stragglers: Sequence[Row],
    causes: Sequence[Row],
    concurrency: Sequence[Row],
    columns: int,
    limit: int,
) -> Iterator[Line]:
    """Write a step, the first `limit` (0: all) of its stragglers and the causes of slowness."""
    yield from _figures(step, columns)
    if concurrency:
        yield ()
        yield from _at_work(step, concurrency, columns)
    slow = [row for row in stragglers if row["is_slow"]]
    if not stragglers:
        return
    yield ()
    shown = stragglers[:limit] if limit else stragglers
    yield (Part("STRAGGLERS", "title"), Part(f"   {_how_many(step, slow)}"))
    for row in shown:
        yield from _straggler(row, columns)
    if left := len(stragglers) - len(shown):
        yield (Part(f"… {count(left)} more; --limit 0 shows all", "quiet"),)
    if len(slow) >= _TO_COMPARE:
        yield ()
        yield (Part("WHAT SLOW ONES HAVE IN COMMON", "title"),)
        yield from _in_common(slow, causes, columns)


def _figures(step: Row, columns: int) -> Iterator[Line]:
    run = f"   run {clean(step['run_id'])}" if step["run_id"] else ""
    job = f"   gym.job {step['span_id']}" if step["span_id"] else ""
    yield (
        Part(f"step {step['step']}", "title"),
        Part(f"{run}   {instant(step['start_time_unix_nano'])}{job}"),
    )
    words = f"{duration(step['duration_ns'])}, {plural(step['rollout_count'], 'rollout')}"
    if failed := step["failed_count"]:
        words += f", {count(failed)} failed"
    if unfinished := step["unfinished_count"]:
        words += f", {count(unfinished)} unfinished"
    if (rate := step["rollouts_per_second"]) is not None:
        words += f"; {_digits(rate)} finished per second"
    yield from _row("took", words, columns)
    if not step["rollout_count"]:
        return
    yield from _row(
        "rollouts",
        f"median {duration(step['duration_p50_ns'])}, p99 {duration(step['duration_p99_ns'])}, "
        f"longest {duration(step['duration_max_ns'])}",
        columns,
    )
    yield from _row(
        "had ended",
        f"half after {duration(step['ended_p50_ns'])}, 90 % after "
        f"{duration(step['ended_p90_ns'])}, 99 % after {duration(step['ended_p99_ns'])}, "
        f"all after {duration(step['ended_all_ns'])}",
        columns,
    )
    if (tail_ns := step["tail_ns"]) is not None:
        last = "the last one" if step["tail_count"] == 1 else f"the last {step['tail_count']:,}"
        share = f" ({100 * tail_ns / step['duration_ns']:.0f} %)" if step["duration_ns"] else ""
        yield from _row("tail", f"{last} held it up for {duration(tail_ns)}{share}", columns)


def _at_work(step: Row, concurrency: Sequence[Row], columns: int) -> Iterator[Line]:
    """Draw what went on over the time of the step, a line for rollouts and for each service."""
    start, end = step["start_time_unix_nano"], step["end_time_unix_nano"]
    room = buckets(columns)
    axis = Axis(start, end, room)
    names = short_names(row["service_name"] for row in concurrency)
    lines: dict[tuple[str, str | None], dict[int, Row]] = {}
    for row in concurrency:
        lines.setdefault((row["counted"], row["service_name"]), {})[row["bucket"]] = row
    indent = " " * (_HEADING + _FIGURES + 2)
    yield (Part("AT WORK".ljust(len(indent)), "title"), Part(axis.ruler(), "quiet"))
    for (counted, service), parts in lines.items():
        label = counted if counted == "rollouts" else names[service]
        means = [parts[n]["mean_running"] if n in parts else 0.0 for n in range(1, room + 1)]
        most = max(part["max_running"] for part in parts.values())
        figures = f"most {count(most)}, mean {_digits(sum(means) / room)}"
        yield (
            Part(fit(label, _HEADING)),
            Part(fit(figures, _FIGURES), "quiet"),
            Part("  "),
            Part(_sparks(means, most), "service0" if counted == "rollouts" else ""),
        )


def _sparks(means: Sequence[float], most: int) -> str:
    """Draw each mean as a block as high as its share of the most; nothing at all is a blank."""
    highest = len(_SPARKS) - 1
    return "".join(
        _SPARKS[min(round(mean / most * highest), highest)] if mean > 0 else " " for mean in means
    )


def _how_many(step: Row, slow: Sequence[Row]) -> str:
    if not slow:
        return "none took longer than one and a half times the median; the last to end"
    return (
        f"{count(len(slow))} of {count(step['rollout_count'])} took longer than one and a half "
        "times the median"
    )


def _straggler(row: Row, columns: int) -> Iterator[Line]:
    words = duration(row["duration_ns"])
    if row["is_slow"]:
        words += f", {duration(row['excess_ns'])} more than the median"
    nth = row["nth_from_last"]
    words += "; ended last" if nth == 1 else f"; {count(nth - 1)} ended later"
    if row["held_up_ns"] and nth == 1:
        words += f", held the step up for {duration(row['held_up_ns'])}"
    if row["has_failed"]:
        words += "; failed"
    if not row["has_ended"]:
        words += "; unfinished"
    yield from _row(row["rollout_id"], words, columns)
    if not row["is_slow"]:
        yield from _row("", f"began {duration(row['began_after_ns'])} after the step", columns)
    elif row["name"] is not None:
        yield from _row(
            "",
            f"{row['name']} in {row['instance']}: {duration(row['blame_ns'])} on its critical "
            f"path, usually {duration(row['usual_blame_ns'])}",
            columns,
        )
    if row["cause_value"] is not None:
        yield from _row("", f"met {row['cause_aspect']} {row['cause_value']}", columns)


def _in_common(slow: Sequence[Row], causes: Iterable[Row], columns: int) -> Iterator[Line]:
    found = [row for row in causes if row["is_cause"]]
    for row in found:
        met, others = row["rollouts_with"], row["rollouts_without"]
        yield from _row(
            row["aspect"],
            f"{row['value']}: {count(row['slow_with'])} of the {count(met)} that met it are slow, "
            f"{count(row['slow_without'])} of the {count(others)} others; chance does that "
            f"{_chance(row['chance'])}",
            columns,
        )
    if not found:
        yield from _row("", "nothing that they met explains them better than chance does", columns)
    places = Counter((row["name"], row["instance"]) for row in slow if row["name"] is not None)
    for (name, instance), number in places.most_common(1):
        if 2 * number >= len(slow):
            yield from _row(
                "span",
                f"{count(number)} of {count(len(slow))} lost most in {name} in {instance}",
                columns,
            )


def _chance(chance: float) -> str:
    return "less than once in a million" if chance < 1e-6 else f"once in {count(round(1 / chance))}"


def _digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _row(heading: str, words: str, columns: int) -> Iterator[Line]:
    """Write a heading, and words beside it in as many lines as they need."""
    label = Part(f"{clean(heading):<{_HEADING}}", "quiet")
    if len(label.text) > _HEADING:
        yield (label,)
        label = Part(" " * _HEADING)
    for line in wrapped(words, max(columns - _HEADING, _MIN_ROOM)):
        yield (label, Part(line))
        label = Part(" " * _HEADING)

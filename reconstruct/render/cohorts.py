"""Two cohorts of rollouts in words: what the change of the mean is made of, what values differ.

A row is a call path or an attribute, the largest difference first. `●` marks what chance does not
explain. What a terminal has no room for is the far end of a call path; figures are never cut.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from reconstruct.render.differences import change_of
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    duration,
    fit,
    flow,
    plural,
    short_names,
    width,
)

__all__ = ["attribute_lines", "heading", "path_lines"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds

_REAL: Final = "●"
_WIDE: Final = 100
"""From so many columns on, spans per rollout are shown too."""
_SUMMED: Final = ("difference_ns", "blame_a_ns", "blame_b_ns")
_LEAST_WORDS: Final = 16
_VALUE: Final = 40
_FEW: Final = 5
"""With fewer rollouts than this nothing is said about chance, as in SQL."""


def heading(whole: Row, noun: str, labels: Sequence[str], columns: int) -> Iterator[Line]:
    """Say what A and B are, and how the mean duration changed."""
    for name, label, size in zip(
        "AB", labels, (whole["rollouts_a"], whole["rollouts_b"]), strict=True
    ):
        room = columns - 3 - width(words := plural(size, noun)) - 3
        yield (
            Part(f"{name}  ", "title"),
            Part(words + "   "),
            Part(fit(label, room).rstrip(), "quiet"),
        )
    yield ()
    chunks = [
        (
            Part("mean duration "),
            Part(f"{duration(whole['blame_a_ns'])} → {duration(whole['blame_b_ns'])}", "title"),
        ),
        (Part(_percent(whole)),),
        (Part(f"95 % interval {_interval(whole)}"),),
        (
            Part(
                f"p50 {duration(whole['duration_p50_a_ns'])} → "
                f"{duration(whole['duration_p50_b_ns'])}"
            ),
        ),
        (
            Part(
                f"p95 {duration(whole['duration_p95_a_ns'])} → "
                f"{duration(whole['duration_p95_b_ns'])}"
            ),
        ),
    ]
    yield from flow(chunks if whole["low_ns"] is not None else chunks[:2] + chunks[3:], columns)
    if min(whole["rollouts_a"], whole["rollouts_b"]) < _FEW:
        words = f"Fewer than {_FEW} {noun}s on a side tell nothing about chance: nothing is marked."
        yield (Part(words, "warning"),)


def path_lines(rows: Sequence[Row], noun: str, columns: int, *, max_rows: int) -> Iterator[Line]:
    """Show what the change of the mean is made of, in `max_rows` rows (0: all) and their sum."""
    words = f"What the change is made of: time on the critical path of the mean {noun}"
    yield (Part(words, "title"),)
    whole = next(row for row in rows if row["part"] == "whole")
    parts = [row for row in rows if row["part"] != "whole" and _counts(row)]
    shown = parts[:max_rows] if max_rows else parts
    rest = parts[len(shown) :]
    services = short_names(row["service_name"] for row in parts)
    places = ["", *(_place(row, services) for row in shown)]
    figures = [["CHANGE", "INTERVAL", "A", "B", "SPANS"], *map(_figures, shown)]
    if rest:
        places.append(f"{plural(len(rest), 'more path')}; --limit 0 shows all")
        sums = [sum(row[key] for row in rest) for key in _SUMMED]
        figures.append([change_of(sums[0]), "", duration(sums[1]), duration(sums[2]), ""])
    places.append(f"all of them: the whole {noun}")
    figures.append(_figures(whole))
    if columns < _WIDE:
        figures = [_without(cells, 4) for cells in figures]
    if whole["low_ns"] is None:
        figures = [_without(cells, 1) for cells in figures]
    marks = ["", *map(_mark, shown), *([""] if rest else []), _mark(whole)]
    yield from _laid_out(places, figures, marks, columns)
    if any(row["is_real"] for row in parts):
        words = f"  {_REAL} chance explains it in one of 20 such tables: the interval leaves 0 out"
        yield (Part(words, "quiet"),)


def attribute_lines(
    rows: Sequence[Row], noun: str, columns: int, *, max_rows: int, sample: int
) -> Iterator[Line]:
    """Show which values differ most, then which attributes were left out."""
    title = f"Which attributes differ: share of the {noun}s that have the value"
    yield (Part(title, "title"),)
    values = [row for row in rows if row["kind"] != "id"]
    shown = values[:max_rows] if max_rows else values
    services = short_names(row["service_name"] for row in shown)
    places = ["", *(_value(row, services) for row in shown)]
    figures = [["A", "B"], *map(_shares, shown)]
    if shown:
        yield from _laid_out(places, figures, ["", *map(_mark, shown)], columns)
    else:
        yield (Part("  none"),)
    if left := len(values) - len(shown):
        yield (Part(f"  … {plural(left, 'more value')}; --limit 0 shows all", "quiet"),)
    if sample:
        words = f"  an estimate, from {sample:,} {noun}s of a side that has more"
        yield (Part(words, "quiet"),)
    if ids := sorted({clean(row["key"]) for row in rows if row["kind"] == "id"}):
        words = "ids are not compared: " + ", ".join(ids)
        for line in wrap(words, max(columns - 2, _LEAST_WORDS), break_on_hyphens=False):
            yield (Part(f"  {line}", "quiet"),)


def _counts(row: Row) -> bool:
    """Say whether a row is worth a line: what is outside of all spans is mostly nothing."""
    return row["part"] != "outside" or bool(row["blame_a_ns"] or row["blame_b_ns"])


def _mark(row: Row) -> str:
    return _REAL if row["is_real"] else ""


def _figures(row: Row) -> list[str]:
    spans = ""
    if row["part"] == "path":
        spans = f"{_number(row['spans_a'])} → {_number(row['spans_b'])}"
    return [
        change_of(row["difference_ns"]),
        _interval(row),
        duration(row["blame_a_ns"]),
        duration(row["blame_b_ns"]),
        spans,
    ]


def _interval(row: Row) -> str:
    if row["low_ns"] is None:
        return "-"
    return f"{change_of(row['low_ns'])} … {change_of(row['high_ns'])}"


def _percent(row: Row) -> str:
    change = change_of(row["difference_ns"])
    return change if row["ratio"] is None else f"{change}, {100 * (row['ratio'] - 1):+.0f} %"


def _number(value: float | None) -> str:
    if value is None:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _place(row: Row, services: Mapping[str | None, str]) -> str:
    if row["part"] == "outside":
        return "between its traces, in no span"
    *above, _ = row["calls"].split(" > ")
    chain = "".join(f" ‹ {_words(step, services)}" for step in reversed(above))
    return f"{row['name']}, {services[row['service_name']]}{chain}"


def _words(step: str, services: Mapping[str | None, str]) -> str:
    """Take the service of a step of a call path off: it has a line of its own."""
    for service in services:
        if service and step.startswith(f"{service}: "):
            return step.removeprefix(f"{service}: ")
    return step


def _shares(row: Row) -> list[str]:
    if row["kind"] == "number":
        return [_number(row["p50_a"]), _number(row["p50_b"])]
    return [f"{100 * row['share_a']:.0f} %", f"{100 * row['share_b']:.0f} %"]


def _value(row: Row, services: Mapping[str | None, str]) -> str:
    where = ", ".join(filter(None, (row["name"], services[row["service_name"]])))
    if row["kind"] == "number":
        return f"{row['key']}, its median ‹ {where}"
    value = str(row["value"])
    shown = value if len(value) <= _VALUE else value[: _VALUE - 1] + "…"
    return f"{row['key']} = {shown} ‹ {where}"


def _called(words: str) -> Iterator[Part]:
    """Set what comes after the first of a chain back."""
    first, arrow, rest = words.partition(" ‹ ")
    yield Part(first)
    if arrow:
        yield Part(arrow + rest, "quiet")


def _laid_out(
    words: Sequence[str], cells: Sequence[Sequence[str]], marks: Sequence[str], columns: int
) -> Iterator[Line]:
    """Set marks, figures in columns and words side by side; the first row is the head."""
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    room = max(columns - 2 - sum(each + 2 for each in widths), _LEAST_WORDS)
    for index, (text, row, mark) in enumerate(zip(words, cells, marks, strict=True)):
        figures = "".join(
            fit(cell, each, right=True) + "  " for cell, each in zip(row, widths, strict=True)
        )
        yield (
            Part(f"{mark:<2}", "warning"),
            Part(figures, "" if index else "quiet"),
            *_called(fit(text, room).rstrip()),
        )


def _without(cells: Iterable[str], place: int) -> list[str]:
    return [cell for index, cell in enumerate(cells) if index != place]

"""Where the time of a fleet's start went: a bar for each of its processes, made of its stages.

All bars share one time axis, from the spawn of the first server. The stages of a process follow
each other without a gap, each in another shade than its neighbours; what it was in when it failed
or was last seen is hatched. Servers that the start waited for are marked, and their stages listed.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from reconstruct.render.bars import HATCH, Axis
from reconstruct.render.text import Line, Part, clean, duration, fit, flow, instant, plural, width

__all__ = ["startup"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds

_SHADES: Final = "█▓▒░"
_STYLES: Final = 8
"""Stages take the styles `service0` … `service7` in the order in which they first appear."""
_HELD_UP: Final = "▸"
_UNFINISHED: Final = "unfinished"
_MIN_BAR: Final = 20
_SHARE_BAR: Final = 30
_ENDS: Final = {
    "ready": "was ready after",
    "timeout": "was not ready after",
    "failed": "failed after",
    "interrupted": "was interrupted after",
    "open": "is still starting after",
    "lost": "was last seen starting after",
    "unknown": "was last seen starting after",
}
_OUTCOMES: Final = {
    "ready": ("ready after {}", "good"),
    "timeout": ("not ready after {}, and given up", "error"),
    "failed": ("failed after {}", "error"),
    "interrupted": ("interrupted after {}", "error"),
    "open": ("still starting after {}", "warning"),
    "lost": ("last seen starting after {}; then its supervisor ended", "error"),
    "unknown": (
        "as its servers tell it, {}; the supervisor's lines are not in these logs",
        "warning",
    ),
}


class _Stages:
    """The shade and the style of each stage."""

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(dict.fromkeys(names))}

    def shade(self, stage: Row) -> str:
        return HATCH if stage["is_unfinished"] else _SHADES[self._places[stage["stage"]] % 4]

    def style(self, stage: Row) -> str:
        return "error" if stage["is_unfinished"] else self.of(stage["stage"])

    def of(self, name: str) -> str:
        return f"service{self._places[name] % _STYLES}"

    def legend(self) -> Iterator[Line]:
        for name, place in self._places.items():
            yield (Part(_SHADES[place % 4], self.of(name)), Part(f" {clean(name)}", "quiet"))


def startup(start: Row, *, columns: int = 100) -> list[Line]:
    """Draw a row of startups with its `stages` and `servers`, these with theirs.

    Lines are at most `columns` wide where names leave room for bars.
    """
    servers = start["servers"]
    looks = _Stages([stage["stage"] for server in servers for stage in server["stages"]])
    lines = [*_heading(start, columns), ()]
    if servers:
        lines += _drawn(start, looks, columns)
        lines += [*flow(looks.legend(), columns, "  "), ()]
    for server in servers:
        if server["has_held_up"]:
            lines += [*_told(server, looks, columns), ()]
    return lines


def _heading(start: Row, columns: int) -> Iterator[Line]:
    words, style = _OUTCOMES.get(start["outcome"], ("{}", ""))
    servers = f"{start['ready_count']} of {plural(start['server_count'], 'server')} ready"
    facts: list[Line] = [
        (Part("start ", "quiet"), Part(words.format(duration(start["duration_ns"])), style)),
        (Part(servers),),
        (Part(instant(start["start_time_unix_nano"])),),
        *([(Part("run ", "quiet"), Part(clean(start["run_id"])))] if start["run_id"] else []),
        (Part("trace ", "quiet"), Part(start["trace_id"][:8])),
    ]
    yield from flow(facts, columns)
    stages: list[Line] = [
        (
            Part(clean(stage["stage"]) + " ", "quiet"),
            Part(duration(stage["duration_ns"])),
            Part(f" {_UNFINISHED}" if stage["is_unfinished"] else "", "error"),
        )
        for stage in start["stages"]
    ]
    yield from flow([(Part("supervisor:", "quiet"),), *stages] if stages else [], columns)
    # What a server says below is the same, in more words.
    if start["message"] and not any(s["has_held_up"] and s["message"] for s in start["servers"]):
        yield from _wrapped(start["message"], columns, "", "error")


def _drawn(start: Row, looks: "_Stages", columns: int) -> Iterator[Line]:
    """A line for each server, and below one of several processes a line for each of these."""
    rows = list(_rows(start))
    begin = min(row.begin for row in rows)
    has_outcomes = any(server["outcome"] != "ready" for server in start["servers"])
    name = max(width(row.name) for row in rows)
    name = min(name, max(columns - _MIN_BAR - 24, 12))
    length = max(len(duration(row.end - row.begin)) for row in rows)
    outcome = max(len(row.outcome) for row in rows) if has_outcomes else 0
    before = 2 + name + 1 + (outcome + 1 if outcome else 0) + length + 1
    end = max(begin + 1, *(row.last for row in rows))
    axis = Axis(begin, end, max(columns - before, _MIN_BAR))
    yield (Part(" " * before), Part(axis.ruler(), "quiet"))
    for row in rows:
        style = "" if row.outcome == "ready" else "error"
        yield (
            Part(f"{_HELD_UP} " if row.has_held_up else "  ", "title"),
            Part(fit(row.name, name, keep_end=True) + " ", "title" if row.has_held_up else ""),
            *([Part(fit(row.outcome, outcome) + " ", style)] if outcome else []),
            Part(fit(duration(row.end - row.begin), length, right=True) + " "),
            *_bar(row, axis, looks),
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """A server, or one of its processes."""

    name: str
    outcome: str
    begin: int
    end: int
    stages: Sequence[Row]
    has_held_up: bool = False

    @property
    def last(self) -> int:
        """When it or a stage was last seen: a process may outlive who tells of it."""
        ends = (stage["start_time_unix_nano"] + stage["duration_ns"] for stage in self.stages)
        return max(self.end, *ends) if self.stages else self.end


def _rows(start: Row) -> Iterator[_Row]:
    for server in start["servers"]:
        groups = groupby(server["stages"], lambda stage: (stage["part"], stage["instance"]))
        processes = [(part, list(stages)) for (part, _), stages in groups]
        begin = server["start_time_unix_nano"]
        yield _Row(
            server["server_name"] or "-",
            server["outcome"],
            begin,
            begin + server["duration_ns"],
            processes[0][1] if len(processes) == 1 else [],
            server["has_held_up"],
        )
        for part, stages in processes if len(processes) > 1 else []:
            last = stages[-1]
            pid = "" if last["process_pid"] is None else f" {last['process_pid']}"
            yield _Row(
                f"  {'main process' if part == 'server' else part}{pid}",
                _UNFINISHED if last["is_unfinished"] else "ready",
                stages[0]["start_time_unix_nano"],
                last["start_time_unix_nano"] + last["duration_ns"],
                stages,
            )


def _bar(row: _Row, axis: Axis, looks: "_Stages") -> Iterator[Part]:
    """Each column shows the stage in its middle; a line is time that no stage tells of."""
    cells: list[tuple[str, str]] = []
    first, drawn = axis.bar(row.begin, row.last, [])
    cells += [(" ", "")] * first + [("─", "quiet")] * len(drawn)
    width_ns = (axis.end_ns - axis.start_ns) / axis.columns
    for stage in row.stages:
        begin = (stage["start_time_unix_nano"] - axis.start_ns) / width_ns
        end = begin + stage["duration_ns"] / width_ns
        for column in range(max(round(begin), 0), min(round(end), len(cells))):
            cells[column] = (looks.shade(stage), looks.style(stage))
        if stage["is_unfinished"]:  # it is seen, however short it was
            cells[min(max(round(end) - 1, 0), len(cells) - 1)] = (HATCH, "error")
    for style, same in groupby(cells, lambda cell: cell[1]):
        yield Part("".join(glyph for glyph, _ in same), style)


def _told(server: Row, looks: "_Stages", columns: int) -> Iterator[Line]:
    """What a server that held up the start was doing, in words, and the stages of its process."""
    name = server["server_name"] or "a server"
    is_ready = server["outcome"] == "ready"
    words = f"{name} {_ENDS[server['outcome']]} {duration(server['duration_ns'])}"
    if is_ready and server["behind_ns"] is not None:
        words = f"{name} was ready last, {duration(server['behind_ns'])} after the one before it"
    if server["stage"] is None:
        words += "; its process tells nothing of its start"
    elif server["is_stage_over"] and not is_ready:
        words += f"; {server['stage']} was over, and what it did next is not in these logs"
    elif not is_ready:
        words += f", in {server['stage']}"
    yield from _wrapped(words, columns, "", "title")
    for message in dict.fromkeys((server["message"], server["own_message"])):
        if message:
            yield from _wrapped(message, columns, "  ", "error")
    own = [stage for stage in server["stages"] if stage["instance"] == server["instance"]]
    names = max((width(clean(stage["stage"])) for stage in own), default=0)
    lengths = max((len(duration(stage["duration_ns"])) for stage in own), default=0)
    room = min(_SHARE_BAR, max(columns - names - lengths - len(_UNFINISHED) - 14, 0))
    for stage in own:
        share = stage["share"] or 0.0
        bar = looks.shade(stage) * round(share * room)
        yield (
            Part("  " + fit(stage["stage"], names) + "  "),
            Part(fit(duration(stage["duration_ns"]), lengths, right=True) + "  "),
            Part(f"{100 * share:3.0f} %  "),
            Part(bar, looks.style(stage)),
            Part(f"{' ' * bool(bar)}{_UNFINISHED}" if stage["is_unfinished"] else "", "error"),
        )
    if is_ready and server["noticed_after_ns"] is not None:
        wait = duration(server["noticed_after_ns"])
        yield (Part(f"  then {wait} until its supervisor saw it answer", "quiet"),)


def _wrapped(words: str, columns: int, indent: str, style: str) -> Iterator[Line]:
    room = max(columns - len(indent), _MIN_BAR)
    for line in textwrap.wrap(clean(words), room, break_on_hyphens=False):
        yield (Part(indent + line, style),)

"""How a snapshot looks on a terminal: as much of it as fits, and what was left out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from reconstruct.console import Column, Console, Row
from reconstruct.intake.ledger import LineClass
from reconstruct.live.snapshot import OpenRollout, Snapshot
from reconstruct.render.text import Line, Part, clean, count, duration, plural, short_names, size

__all__ = ["DAMAGED", "overview", "screen"]

DAMAGED: Final = (
    LineClass.RECOVERED,
    LineClass.TORN,
    LineClass.INVALID,
    LineClass.BAD_ENCODING,
    LineClass.OVERSIZE,
)
_NOTICES: Final = 3

_OPEN: Final = [
    Column("age_ns", "AGE", "duration"),
    Column("rollout_id", "OPEN ROLLOUTS"),
    Column("now", "NOW"),
    Column("service_name", "SERVICE"),
    Column("span_count", "SPANS", "count"),
    Column("error_count", "ERRORS", "count"),
    Column("run_id", "RUN"),
]
_SLOWEST: Final = [
    Column("duration_ns", "TOOK", "duration"),
    Column("rollout_id", "SLOWEST"),
    Column("span_count", "SPANS", "count"),
    Column("error_count", "ERRORS", "count"),
    Column("run_id", "RUN"),
]
_FAILURES: Final = [
    Column("ago_ns", "LAST", "duration"),
    Column("route", "ERRORS"),
    Column("service_name", "SERVICE"),
    Column("count", "COUNT", "count"),
    Column("message", "LAST MESSAGE"),
]
_PROCESSES: Final = [
    Column("ago_ns", "SEEN", "duration"),
    Column("service_name", "PROCESSES"),
    Column("process_pid", "PID"),
    Column("state", "STATE"),
    Column("spans_read", "SPANS", "count"),
    Column("open_spans", "OPEN", "count"),
    Column("records_dropped", "DROPPED", "count"),
    Column("lag_ns", "LAG", "duration"),
    Column("host_name", "HOST"),
]


@dataclass(slots=True)
class _Section:
    """A table of the screen: `total` are the rows there are, `shown` those there is room for."""

    noun: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    total: int
    shown: int = 0

    @property
    def height(self) -> int:
        """Screen rows it takes: a blank one, its heading, its rows, how many are left out."""
        return 2 + self.shown + (self.total > self.shown)


def screen(
    snapshot: Snapshot,
    console: Console,
    *,
    file_count: int,
    bytes_left: int,
    notices: Sequence[str] = (),
) -> list[Line]:
    """Draw a snapshot within the columns and rows of the console."""
    lines = list(overview(snapshot, file_count=file_count, bytes_left=bytes_left))
    words = [(Part(clean(notice), "warning"),) for notice in notices[-_NOTICES:]]
    sections = [section for section in _sections(snapshot) if section.rows]
    left_out = _fit(sections, console.rows - 1 - len(lines) - len(words))
    for section in sections:
        lines.append((Part(""),))
        lines += console.laid_out(section.columns, section.rows[: section.shown])
        if (more := section.total - section.shown) > 0:
            lines.append((Part(f"… {count(more)} more", "quiet"),))
    if left_out:
        lines.append((Part(f"no room for: {', '.join(left_out)}", "quiet"),))
    return lines + words


def _fit(sections: list[_Section], room: int) -> list[str]:
    """Give each section rows, and take out those for which there is no room; name these."""
    for section in sections:
        section.shown = len(section.rows)
    left_out: list[str] = []
    while sections and sum(section.height for section in sections) > room - bool(left_out):
        largest = max(sections, key=lambda section: section.shown)
        if largest.shown > 1:
            largest.shown -= 1
        else:
            left_out.insert(0, sections.pop().noun)
    return left_out


def overview(snapshot: Snapshot, *, file_count: int, bytes_left: int) -> Iterator[Line]:
    """Say in a few lines how it is."""
    newest = snapshot.newest_time_unix_nano
    words = plural(file_count, "file")
    if newest is None:
        words += ", no records yet"
    else:
        behind = max(0, snapshot.time_unix_nano - newest)
        words += f", the latest record is {duration(behind)} old"
    if bytes_left:
        words += f", {size(bytes_left)} to be read"
    yield _line("read", words)
    words = f"{count(snapshot.open_count)} open, {count(snapshot.finished_count)} finished"
    words += f" ({count(snapshot.finished_in_10_s)} in 10 s, "
    words += f"{count(snapshot.finished_in_60_s)} in 60 s)"
    yield _line("rollouts", words)
    wrong = [
        plural(number, noun)
        for number, noun in (
            (snapshot.lost_count, "lost rollout"),
            (snapshot.error_count, "error"),
            (snapshot.died_count, "dead or silent process"),
            (sum(snapshot.line_classes.get(name, 0) for name in DAMAGED), "damaged line"),
        )
        if number
    ]
    yield _line("wrong", ", ".join(wrong) or "nothing", "error" if wrong else "")


def _line(heading: str, words: str, style: str = "") -> Line:
    return (Part(f"{heading:<10}", "quiet"), Part(words, style))


def _sections(snapshot: Snapshot) -> Iterator[_Section]:
    now = snapshot.time_unix_nano
    services = (
        *(process.service_name for process in snapshot.processes),
        *(rollout.service_name for rollout in snapshot.open),
        *(failure.service_name for failure in snapshot.failures),
    )
    names = short_names(services)
    runs = {rollout.run_id for rollout in snapshot.open}
    runs |= {rollout.run_id for rollout in snapshot.slowest}
    yield _Section(
        "open rollouts",
        _OPEN if len(runs) > 1 else _OPEN[:-1],
        [
            {
                **asdict(rollout),
                "age_ns": max(0, now - rollout.start_time_unix_nano),
                "now": _whereabouts(rollout),
                "service_name": names.get(rollout.service_name),
            }
            for rollout in snapshot.open
        ],
        snapshot.open_count,
    )
    yield _Section(
        "errors",
        _FAILURES,
        [
            {
                **asdict(failure),
                "ago_ns": max(0, now - failure.last_time_unix_nano),
                "service_name": names.get(failure.service_name),
            }
            for failure in snapshot.failures
        ],
        len(snapshot.failures),
    )
    yield _Section(
        "processes",
        _PROCESSES,
        [
            {
                **asdict(process),
                "ago_ns": max(0, now - process.last_time_unix_nano),
                "service_name": names.get(process.service_name),
                "lag_ns": None if process.lag_ms is None else round(process.lag_ms * 1e6),
            }
            for process in snapshot.processes
        ],
        snapshot.process_count,
    )
    yield _Section(
        "slowest",
        _SLOWEST if len(runs) > 1 else _SLOWEST[:-1],
        [asdict(rollout) for rollout in snapshot.slowest],
        len(snapshot.slowest),
    )


def _whereabouts(rollout: OpenRollout) -> str | None:
    if rollout.span_name is not None:
        return rollout.span_name
    return None if rollout.after is None else f"after {rollout.after}"

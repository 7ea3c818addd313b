"""`reconstruct follow`: what is going on, from the logs as they grow."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.commands.logs import color_option, paths_argument, wrapper_option
from reconstruct.console import Color, Console
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    count,
    duration,
    instant,
    json_text,
    plural,
)

if TYPE_CHECKING:
    from reconstruct.intake.tables import Row as TableRow
    from reconstruct.live.snapshot import Event, Snapshot
    from reconstruct.live.tail import Tail

__all__ = ["command"]

_INTERRUPTED: Final = 130
_PAST_ROWS: Final = 50_000
"""So many rows of the past between two settlements, which free what is over."""
_DRAW_SECONDS: Final = 0.5
"""So often at least something is shown while much is read."""


@click.command("follow", short_help="Show what is going on while the logs grow.")
@paths_argument
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines instead of a table.")
@color_option
@wrapper_option
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="Look so often.",
)
@click.option("--since-now", is_flag=True, help="Leave out what the logs hold already.")
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End when nothing came for so long.",
)
@click.option(
    "--exit-when-stopped",
    is_flag=True,
    help="End when no process is alive any more: each has stopped, died or fallen silent.",
)
def command(
    paths: tuple[str, ...],
    *,
    as_json: bool,
    color: Color,
    wrapper: str | None,
    interval: float,
    since_now: bool,
    until_idle: float | None,
    exit_when_stopped: bool,
) -> int:
    """Show what is going on while the logs grow: open rollouts and where they are, processes,
    errors, the slowest rollouts. New files are found, rotated and truncated ones noticed.

    On a terminal it is one picture, drawn anew. In a pipe it is one line per event: a rollout that
    has finished or is lost, an error, a process that is alive, silent, dead or has stopped. With
    --json each line is an object with its `event`; the first one (`past`) and the last one
    (`summary`) say how it was then.

    It ends at Ctrl-C, at the end of standard input, when nobody reads it any more (`| head`), or as
    the options say; then the exit code is 1 when there were errors, lost rollouts or dead
    processes.

    \b
    Example: wait for a run in a script
      reconstruct follow logs/ --json --exit-when-stopped > events.jsonl || echo "look into it"
    """
    from reconstruct.live.tail import Tail

    tail = Tail(list(paths) or ["."], wrapper=wrapper, since_now=since_now)
    following = _Following(Console(color=color), tail, as_json=as_json)
    with _interrupts_handled_by(following):
        try:
            following.read_past()
            with following.shown():
                following.run(interval, until_idle, exit_when_stopped=exit_when_stopped)
            following.read_rest()
        except KeyboardInterrupt:
            following.end()
            return _INTERRUPTED
        return 0 if following.end() else 1


class _Following:
    """Reads what is new, keeps the state of it, and shows it in one of three ways."""

    def __init__(self, console: Console, tail: "Tail", *, as_json: bool) -> None:
        from reconstruct.live.state import State

        self._console = console
        self._tail = tail
        self._state = State()
        self._as_json = as_json
        self._draw: Callable[[Iterable[Line]], None] | None = None
        self._notices: list[str] = []
        self._is_interrupted = False
        self._begun = self._last_news = self._last_shown = time.monotonic()

    def read_past(self) -> None:
        """Read what the logs hold already; events of that time are left out."""
        rows = 0
        with self._console.progress("reading what is there") as progress:
            total = 0
            for table, batch in self._tail.past():
                self._add(table, batch)
                rows += len(batch)
                if rows >= _PAST_ROWS:
                    rows = 0
                    left = self._tail.bytes_left
                    total = max(total, left)
                    self._state.settle()
                    if progress is not None:
                        progress(total - left, total)
        snapshot = self._state.snapshot(time.time_ns())
        self._say_notices()
        if self._as_json:
            self._write_json("past", snapshot)

    def run(self, interval: float, until_idle: float | None, *, exit_when_stopped: bool) -> None:
        """Go on until there is nothing more to wait for."""
        self._last_news = time.monotonic()
        while True:
            for table, batch in self._tail.look():
                self._add(table, batch)
                self._last_news = time.monotonic()
                if self._last_news - self._last_shown > _DRAW_SECONDS:
                    self._show()
            snapshot = self._show()
            if self._tail.is_over or self._console.is_reader_gone:
                return
            if exit_when_stopped and snapshot.process_count and not snapshot.alive_count:
                return
            if until_idle is not None and time.monotonic() - self._last_news >= until_idle:
                return
            self._tail.wait(interval)
            self._heed_interrupt()

    def interrupt(self) -> None:
        """End soon, between two batches, so that the summary is right; from a signal handler."""
        self._is_interrupted = True
        self._tail.wake()

    def _heed_interrupt(self) -> None:
        if self._is_interrupted:
            raise KeyboardInterrupt

    def _add(self, table: str, rows: "Sequence[TableRow]") -> None:
        self._heed_interrupt()
        self._state.add(table, rows)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw on the terminal for the block, if there is one."""
        if self._as_json or not self._console.is_terminal:
            yield
            return
        try:
            with self._console.live() as self._draw:
                yield
        finally:
            self._draw = None

    def read_rest(self) -> None:
        """Read what has waited for more that will not come."""
        for table, batch in self._tail.close():
            self._add(table, batch)

    def end(self) -> bool:
        """Say what it all came to; return whether nothing is wrong."""
        snapshot = self._show()
        if self._as_json:
            self._write_json("summary", snapshot)
        seconds = time.monotonic() - self._begun
        self._console.say(
            f"followed {plural(self._tail.file_count, 'file')} for "
            f"{duration(round(seconds * 1e9))}: {_summary(snapshot)}"
        )
        return not (snapshot.error_count or snapshot.lost_count or snapshot.died_count)

    def _show(self) -> "Snapshot":
        snapshot = self._state.snapshot(time.time_ns())
        self._last_shown = time.monotonic()
        if self._draw is not None:
            from reconstruct.live.screen import screen

            self._notices += self._tail.notices()
            self._draw(
                screen(
                    snapshot,
                    self._console,
                    file_count=self._tail.file_count,
                    bytes_left=self._tail.bytes_left,
                    notices=self._notices,
                )
            )
            return snapshot
        self._say_notices()
        if self._as_json:
            self._console.text("".join(map(_json_line, snapshot.events)))
        elif not self._console.is_terminal:
            self._console.lines(map(_event_line, snapshot.events))
        if snapshot.events_left_out:
            self._console.say(f"{plural(snapshot.events_left_out, 'event')} left out")
        return snapshot

    def _say_notices(self) -> None:
        for notice in self._tail.notices():
            self._console.say(notice)

    def _write_json(self, event: str, snapshot: "Snapshot") -> None:
        facts = asdict(snapshot)
        del facts["events"], facts["events_left_out"]
        self._console.text(json_text({"event": event, **facts}) + "\n")


@contextmanager
def _interrupts_handled_by(following: _Following) -> Iterator[None]:
    """Let the first Ctrl-C end it in good order, and the second one at once."""
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before is not signal.default_int_handler:
        yield
        return

    def interrupt(*_: object) -> None:
        following.interrupt()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _json_line(event: "Event") -> str:
    facts = {"event": event.kind, "time_unix_nano": event.time_unix_nano, **event.facts}
    return json_text(facts) + "\n"


def _event_line(event: "Event") -> Line:
    is_bad = event.kind in {"error", "rollout_lost", "process_dead", "process_silent"}
    return (
        Part(f"{instant(event.time_unix_nano)}  ", "quiet"),
        Part(f"{event.kind:<16}  ", "error" if is_bad else ""),
        Part(clean(_words(event))),
    )


def _words(event: "Event") -> str:
    facts: dict[str, Any] = dict(event.facts)  # Any: as the facts
    if event.kind.startswith("rollout_"):
        words = f"{facts['rollout_id']}, {duration(facts['duration_ns'])}, "
        words += plural(facts["span_count"], "span")
        return words + (
            f", {plural(facts['error_count'], 'error')}" if facts["error_count"] else ""
        )
    if event.kind == "error":
        place = f"{facts['service_name'] or '-'} {facts['route']}"
        rollout = "" if facts["rollout_id"] is None else f", rollout {facts['rollout_id']}"
        message = f": {facts['message']}" if facts["message"] else ""
        return f"{place}, trace {facts['trace_id']}{rollout}{message}"
    pid = "" if facts["process_pid"] is None else f", pid {facts['process_pid']}"
    return f"{facts['service_name'] or facts['instance']}{pid}"


def _summary(snapshot: "Snapshot") -> str:
    words = f"rollouts {count(snapshot.finished_count)} finished, "
    words += f"{count(snapshot.open_count)} open, {count(snapshot.lost_count)} lost; "
    words += f"{plural(snapshot.span_count, 'span')}, {plural(snapshot.error_count, 'error')}"
    died = snapshot.died_count
    return words + (f"; {plural(died, 'process', 'processes')} dead or silent" if died else "")

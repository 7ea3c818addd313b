"""The only writer of stdout and stderr: stdout is data, stderr is words.

A terminal gets colour and tables cut to its width; a pipe gets aligned text, complete, without
colour. Everything a person reads passes `render.text.clean` first. Whoever closes stdout early
(`| head`) is obeyed quietly: what is left is dropped, and the command's exit code stands. rich is
imported only when a terminal is drawn on.
"""

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TextIO

from reconstruct.errors import DestinationError
from reconstruct.render.records import distinct, texts
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    count,
    duration,
    fit,
    instant,
    json_text,
    plain,
    rate,
    width,
)

if TYPE_CHECKING:
    from rich.console import Console as Terminal
    from rich.text import Text

__all__ = ["PIPE_COLUMNS", "Color", "Column", "Console", "Row"]

Color = Literal["auto", "always", "never"]
Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds

PIPE_COLUMNS: Final = 100
"""Width of drawings in a pipe, unless COLUMNS says otherwise."""
_ROWS: Final = 24
_ID: Final = 32
"""Text up to the length of a trace id is never cut in a table …"""
_CUT_TEXT: Final = 16
"""… and longer text keeps so many columns at least."""

_PIECES_AT_A_TIME: Final = 500

_STYLES: Final = {
    "title": "bold",
    "quiet": "bright_black",
    "guide": "#44474c",
    "error": "bold #e5484d",
    "warning": "#d9a514",
    "good": "#3d9a63",
    "service0": "#5b9df0",
    "service1": "#e8935a",
    "service2": "#57b894",
    "service3": "#b48ae8",
    "service4": "#d8b545",
    "service5": "#4bb8c5",
    "service6": "#e58bb5",
    "service7": "#9aa7b4",
}

_FEW_COLORS: Final = {
    "guide": "bright_black",
    "error": "bold red",
    "warning": "yellow",
    "good": "green",
    "service0": "bright_blue",
    "service1": "magenta",
    "service2": "green",
    "service3": "bright_magenta",
    "service4": "yellow",
    "service5": "cyan",
    "service6": "bright_cyan",
    "service7": "white",
}
"""For terminals of 16 colours, where the nearest of these would make a service red as an error."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the row's key, its heading, how its values read."""

    key: str
    heading: str
    kind: Literal["text", "count", "duration", "instant", "share", "part", "rate"] = "text"
    """A part is a duration, shown as its share of the row's `duration_ns`."""
    meaning: str = ""
    """What the figure is, in a sentence; empty where a relation's column of that name says it."""

    @property
    def right(self) -> bool:
        """Numbers stand at the right of their column."""
        return self.kind in {"count", "duration", "share", "part", "rate"}

    def text(self, row: Row) -> str:
        """Write this column's value of a row for a person; null is a dash."""
        value = row.get(self.key)
        if value is None:
            return "-"
        if self.kind == "count":
            return count(value)
        if self.kind == "duration":
            return duration(value)
        if self.kind == "part":
            value /= row["duration_ns"] or 1
        if self.kind in {"share", "part"}:
            return f"{100 * value:.0f} %"
        if self.kind == "rate":
            return rate(value)
        return instant(value) if self.kind == "instant" else clean(str(value))


class Console:
    """Where a command writes; knows whether a terminal is at the other end.

    Streams and environment are taken at the time of the call, so tests can replace them.
    """

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        *,
        color: Color = "auto",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err
        self._environ = os.environ if environ is None else environ
        self._reader_gone = False
        self.is_terminal = self._out.isatty()
        wanted = self.is_terminal and not self._environ.get("NO_COLOR")
        self.has_color = color == "always" or (
            color == "auto" and wanted and self._environ.get("TERM") != "dumb"
        )

    @property
    def columns(self) -> int:
        """Columns to draw in: COLUMNS, else the terminal's, else `PIPE_COLUMNS`."""
        asked = self._environ.get("COLUMNS", "")
        if asked.isdecimal() and int(asked) > 0:
            return int(asked)
        if self.is_terminal:
            try:
                return os.get_terminal_size(self._out.fileno()).columns or PIPE_COLUMNS
            except (OSError, ValueError):  # a terminal only by its own word
                pass
        return PIPE_COLUMNS

    @property
    def rows(self) -> int:
        """Rows to draw in: LINES, else the terminal's, else `_ROWS`."""
        asked = self._environ.get("LINES", "")
        if asked.isdecimal() and int(asked) > 0:
            return int(asked)
        try:
            return os.get_terminal_size(self._out.fileno()).lines or _ROWS
        except (OSError, ValueError):
            return _ROWS

    @property
    def is_reader_gone(self) -> bool:
        """Whoever read stdout has closed it."""
        return self._reader_gone

    def say(self, words: str) -> None:
        """Write one line of words to stderr; never raises."""
        try:
            self._err.write(clean(words) + "\n")
            self._err.flush()
        except (OSError, ValueError):  # nobody listens, and there is nobody left to tell
            pass

    def lines(self, lines: Iterable[Line]) -> None:
        """Write lines of styled parts to stdout."""
        if not self.has_color:
            self._write(plain(lines))
            return
        from rich.console import Console as Terminal

        drawn = io.StringIO()
        terminal = Terminal(file=drawn, width=self.columns, force_terminal=True)
        for text in _styled(lines, terminal):
            # soft_wrap leaves lines that are too long to the terminal, which loses nothing.
            terminal.print(text, soft_wrap=True)
        self._write(drawn.getvalue())

    @contextmanager
    def live(self) -> Iterator[Callable[[Iterable[Line]], None]]:
        """Yield a function that draws lines in the place of those before, for the block.

        Only for a terminal. Lines that are too long are cut. The last ones stay.
        """
        from rich.console import Console as Terminal
        from rich.console import ConsoleDimensions, Group
        from rich.live import Live

        terminal = Terminal(
            file=self._out,
            width=self.columns,
            height=self.rows,
            force_terminal=True,
            no_color=not self.has_color,
        )
        with Live(console=terminal, auto_refresh=False, vertical_overflow="crop") as live:

            def draw(lines: Iterable[Line]) -> None:
                terminal.size = ConsoleDimensions(self.columns, self.rows)
                texts = list(_styled(lines, terminal))
                for text in texts:
                    text.no_wrap, text.overflow = True, "ellipsis"
                live.update(Group(*texts), refresh=True)

            yield draw

    def table(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        """Write rows under headings: long text cut to fit on a terminal, complete in a pipe."""
        self.lines(self.laid_out(columns, rows))

    def laid_out(self, columns: Sequence[Column], rows: Sequence[Row]) -> list[Line]:
        """Lay rows out as `table` writes them."""
        cells = [[column.text(row) for column in columns] for row in rows]
        return list(_aligned(columns, cells, self.columns if self.is_terminal else None))

    def json(
        self,
        value: Any,  # Any: rows or an object of whatever the relations hold
    ) -> None:
        """Write a value as indented JSON."""
        self._write(json_text(value, indent=2) + "\n")

    def records(self, names: Sequence[str], rows: Iterable[Sequence[object]], form: str) -> None:
        """Write a query's answer as a `table`, or as one of `render.records.FORMATS`."""
        if form == "table":
            names = distinct(names)
            columns = [Column(name, clean(name)) for name in names]
            self.table(columns, [dict(zip(names, row, strict=True)) for row in rows])
            return
        pieces = texts(names, rows, form)
        if form == "csv" and self.is_terminal:
            pieces = map(_inert, pieces)
        while not self._reader_gone and (some := list(islice(pieces, _PIECES_AT_A_TIME))):
            self._write("".join(some))

    @contextmanager
    def binary(self) -> Iterator[IO[bytes]]:
        """Yield stdout for bytes, for the block; who closes it early is obeyed here too."""
        self._out.flush()
        try:
            yield self._out.buffer
            self._out.buffer.flush()
        except BrokenPipeError:
            self._obey()
        except OSError as error:
            raise DestinationError(f"cannot write to stdout: {error.strerror}") from error

    def text(self, text: str) -> None:
        """Write text of the program's own as it is."""
        self._write(text)

    @contextmanager
    def progress(self, words: str) -> Iterator[Callable[[int, int], None] | None]:
        """Show a bar on stderr while the block runs; yields `update(done, total)` in bytes.

        Where stderr is no terminal it yields None: nobody is looking.
        """
        if not self._err.isatty():
            yield None
            return
        from rich.console import Console as Terminal
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        terminal = Terminal(file=self._err, no_color=not self.has_color)
        shown = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Progress(*shown, TimeRemainingColumn(), console=terminal, transient=True) as bar:
            task = bar.add_task(words, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    @contextmanager
    def counting(self, words: str, total: int) -> Iterator[Callable[[int], None] | None]:
        """Show a bar on stderr while the block runs; yields `update(done)` of `total` things.

        Where stderr is no terminal it yields None: nobody is looking.
        """
        if not self._err.isatty():
            yield None
            return
        from rich.console import Console as Terminal
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        terminal = Terminal(file=self._err, no_color=not self.has_color)
        shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*shown, console=terminal, transient=True) as bar:
            task = bar.add_task(words, total=total)
            yield lambda done: bar.update(task, completed=done)

    @contextmanager
    def busy(self, words: str) -> Iterator[None]:
        """Say on stderr what takes a while, for the block, where stderr is a terminal."""
        if not self._err.isatty():
            yield
            return
        from rich.console import Console as Terminal

        terminal = Terminal(file=self._err, no_color=not self.has_color)
        with terminal.status(words):
            yield

    def _write(self, text: str) -> None:
        if self._reader_gone:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:
            self._obey()
        except OSError as error:
            raise DestinationError(f"cannot write to stdout: {error.strerror}") from error

    def _obey(self) -> None:
        """Write nothing more: whoever read has gone."""
        self._reader_gone = True
        # Python flushes once more at exit; let that go nowhere instead of failing.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), self._out.fileno())


def _aligned(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int | None
) -> Iterator[Line]:
    """Lay cells out in columns two apart, within `room` as far as cutting long text gets there."""
    headings = [column.heading for column in columns]
    widths = [max(map(width, column)) for column in zip(headings, *cells, strict=True)]
    # Numbers, times and ids are whole or worthless; only long text is cut.
    texts = [i for i, column in enumerate(columns) if column.kind == "text" and widths[i] > _ID]
    while room is not None and texts and sum(widths) + 2 * (len(widths) - 1) > room:
        longest = max(texts, key=lambda index: widths[index])
        if widths[longest] <= _CUT_TEXT:
            break
        widths[longest] -= 1
    for style, row in (("title", headings), *(("", row) for row in cells)):
        padded = (
            fit(cell, room, right=column.right)
            for column, cell, room in zip(columns, row, widths, strict=True)
        )
        yield (Part("  ".join(padded).rstrip(), style),)


def _styled(lines: Iterable[Line], terminal: "Terminal") -> "Iterator[Text]":
    """Give lines the styles that suit a terminal."""
    from rich.text import Text

    has_few = terminal.color_system in ("standard", "windows")
    styles = _STYLES | _FEW_COLORS if has_few else _STYLES
    for line in lines:
        pieces = [(part.text, styles.get(part.style, "")) for part in line]
        yield Text.assemble(*pieces)


def _inert(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))

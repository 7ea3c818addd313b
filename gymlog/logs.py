"""Log records: an ordinary record of `logging` or structlog becomes one `log` line.

It has the ids of the span it was made in and the current rollout's id. `install_logging` listens
to all that reaches the root logger; levels stay the host's, so a server whose root logger has
level WARNING writes no INFO. Text is the program's own and stands as it is, but for extra fields
under a secret key. Nothing here raises into the host, logs itself, or holds a lock while a host's
object is made into text. Cost: about 15 µs a record. Severities are OpenTelemetry's.
"""

import contextlib
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from structlog import DropEvent, get_config, is_configured
from structlog.processors import TimeStamper
from structlog.typing import EventDict, WrappedLogger

from gymlog import clock
from gymlog.exceptions import exception_attributes
from gymlog.generators import current_span
from gymlog.notices import notice
from gymlog.redaction import REDACTED, SECRET_KEYS
from gymlog.rollout import current_rollout_id
from gymlog.semconv import CODE_FILE_PATH, CODE_FUNCTION_NAME, CODE_LINE_NUMBER, ROLLOUT_ID
from gymlog.service import ServiceInstance
from gymlog.values import Limits, clean, clean_text, take

__all__ = ["LogHandler", "add_trace_context", "install_logging", "remove_logging", "write_log"]

_CODE_STACKTRACE: Final = "code.stacktrace"
_SCOPE_CHARACTERS: Final = 256

_SILENT: Final = frozenset({"gymlog", "opentelemetry"})
"""Loggers of what writes lines: a line about a line could go on for ever."""

_MAX_DEPTH: Final = 4
"""Records made in one thread while another is made into a line: by a signal handler, a finaliser,
or by a `__str__` that logs, which would go on for ever."""

_OWN_FIELDS: Final = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {
    "asctime", "message", "taskName",
}  # fmt: skip
"""What every LogRecord has; the rest came with `extra`."""


class _Entry(NamedTuple):
    """What was logged, whichever library it came from."""

    time_unix_nano: int
    level: int
    level_name: str
    logger_name: str | None
    body: object
    attributes: dict[str, object]
    error: BaseException | None


class _Nesting(threading.local):
    depth = 0


_nesting = _Nesting()


class LogHandler(logging.Handler):
    """Writes each record it is given as a `log` line of a service instance."""

    def __init__(
        self, service: ServiceInstance, level: int = logging.INFO, *, limits: Limits | None = None
    ) -> None:
        super().__init__(level)
        self._service = service
        self._limits = limits or Limits()

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a record that the filters let pass; the sink has its own lock."""
        kept: Any = self.filter(record)  # Any: a bool, or from Python 3.12 on a record
        if kept:
            self.emit(kept if isinstance(kept, logging.LogRecord) else record)
        return bool(kept)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; those of gymlog and OpenTelemetry themselves are left out."""
        if str(record.name).partition(".")[0] not in _SILENT:
            self._write(lambda: _entry_of_record(record))

    def write_event(self, logger_name: str | None, method_name: str, event: EventDict) -> bool:
        """Write an event of structlog's; say whether a line was made of it."""
        if _level_of(event.get("level", method_name)) < self.level:
            return False
        return self._write(lambda: _entry_of_event(logger_name, method_name, event))

    def _write(self, make_entry: Callable[[], _Entry]) -> bool:
        depth = _nesting.depth
        if depth >= _MAX_DEPTH:
            notice("log depth", "log records made while others are written are left out")
            return False
        _nesting.depth = depth + 1
        try:
            self._service.sink.write(self._record(make_entry()))
        except Exception as error:  # noqa: BLE001 - the host must not notice
            kind = type(error).__name__
            notice("log", f"a log record cannot be written and is missing ({kind}); told only once")
            return False
        finally:
            _nesting.depth = depth
        return True

    def _record(self, entry: _Entry) -> dict[str, Any]:  # Any: see gymlog.record
        limits = self._limits
        facts = entry.attributes
        if not SECRET_KEYS.isdisjoint(facts):
            facts = {key: _redacted(value) if key in SECRET_KEYS else value
                     for key, value in facts.items()}  # fmt: skip
        if entry.error is not None:
            facts = {**facts, **exception_attributes(entry.error)}
        attributes: dict[str, Any] = {}  # Any: JSON values
        rollout_id = current_rollout_id()
        if rollout_id is not None:
            attributes[ROLLOUT_ID] = rollout_id
        dropped = take(attributes, facts, limits.attributes, limits.characters)
        body = clean(entry.body, limits.characters)
        content: dict[str, Any] = {  # Any: see gymlog.record
            "record_type": "log",
            "seq": 0,
            "time_unix_nano": entry.time_unix_nano,
            "severity_number": _severity_number(entry.level),
            "severity_text": clean_text(entry.level_name, limits.characters),
            "body": "None" if body is None else body,
            "attributes": attributes,
            **_trace_context(),
        }
        if dropped:
            content["dropped_attributes_count"] = dropped
        if entry.logger_name is not None:
            content["scope"] = {"name": clean_text(entry.logger_name, _SCOPE_CHARACTERS)}
        content["resource"] = self._service.short_resource
        return content


# One handler per process.

_installed: LogHandler | None = None
_above_root: Final = logging.Logger("above the root")  # noqa: LOG001 - no child of the root
_extended: list[Any] | None = None  # Any: structlog's processors
"""structlog's default chain while `write_log` is in it."""


def install_logging(
    service: ServiceInstance, level: int = logging.INFO, *, limits: Limits | None = None
) -> None:
    """Write what reaches the root logger, from `level` on, in place of what was installed before.

    The handler stands above the root logger: were it one of the root's own,
    `logging.basicConfig` would do nothing, `dictConfig` would remove it, and warnings that nobody
    else handles would no longer appear on stderr. When the host has not configured structlog,
    `write_log` joins structlog's default processors; a configured chain names it itself.
    """
    global _installed, _extended
    remove_logging()
    _installed = LogHandler(service, level, limits=limits)
    _above_root.handlers = [_installed, _LastResort()]
    logging.root.parent = _above_root
    if not is_configured():
        # In place, so that loggers made before have it too and the host can still configure.
        processors: list[Any] = get_config()["processors"]  # Any: structlog's processors
        stampers = (n for n, one in enumerate(processors) if isinstance(one, TimeStamper))
        processors.insert(next(stampers, len(processors) - 1), write_log)
        _extended = processors


def remove_logging() -> None:
    """Undo `install_logging`; without it, do nothing."""
    global _installed, _extended
    _installed = None
    _above_root.handlers = []
    if logging.root.parent is _above_root:
        logging.root.parent = None
    if _extended is not None and write_log in _extended:
        _extended.remove(write_log)
    _extended = None


class _LastResort(logging.Handler):
    """Does what `logging` does when no logger has a handler: it no longer knows that none has."""

    def handle(self, record: logging.LogRecord) -> bool:
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and _is_unheard(record):
            last.handle(record)
        return True


def _is_unheard(record: logging.LogRecord) -> bool:
    """Say whether no handler but ours had a record that reached us."""
    logger: object = logging.root.manager.loggerDict.get(record.name, logging.root)
    while isinstance(logger, logging.Logger) and logger is not _above_root:
        if logger.handlers:
            return False
        logger = logger.parent
    return True


# Processors for structlog.


def write_log(logger: WrappedLogger, method_name: str, event_dict: EventDict) -> EventDict:
    """Make an event a `log` line and end its chain; place it before what renders.

    Where no line is written (logs are off, or the level is too low) the event goes on to the
    processors behind, as if this one were not there.
    """
    handler = _installed
    if handler is None:
        return event_dict
    name = getattr(logger, "name", None)
    if handler.write_event(name if isinstance(name, str) else None, method_name, event_dict):
        raise DropEvent
    return event_dict


def add_trace_context(logger: WrappedLogger, method_name: str, event_dict: EventDict) -> EventDict:
    """Add `trace_id`, `span_id` and `nemo.gym.rollout.id` to an event, for a renderer of your own.

    What the event already has stays. Needs no `install_logging`.
    """
    del logger, method_name
    with contextlib.suppress(Exception):  # another library's span may fail
        for key, value in _trace_context().items():
            if key != "flags":
                event_dict.setdefault(key, value)
    rollout_id = current_rollout_id()
    if rollout_id is not None:
        event_dict.setdefault(ROLLOUT_ID, rollout_id)
    return event_dict


# What was logged.


def _entry_of_record(record: logging.LogRecord) -> _Entry:
    place = {
        CODE_FILE_PATH: record.pathname,
        CODE_FUNCTION_NAME: record.funcName,
        CODE_LINE_NUMBER: record.lineno,
    }
    if record.stack_info:
        place[_CODE_STACKTRACE] = record.stack_info
    fields = vars(record)
    entry = _Entry(
        # A float of this size has steps of 256 ns: they round alike and stay in order.
        time_unix_nano=round(record.created * 1_000_000_000),
        level=record.levelno,
        level_name=record.levelname,
        logger_name=record.name,
        body="",
        attributes=place | {key: fields[key] for key in fields if key not in _OWN_FIELDS},
        error=_error_of(record.exc_info),
    )
    if isinstance(record.msg, dict) and "_logger" in fields:
        # structlog's ProcessorFormatter.wrap_for_formatter: the event itself is the message.
        event = _entry_of_event(record.name, record.levelname, record.msg)
        return entry._replace(
            body=event.body,
            attributes=place | event.attributes,
            error=entry.error if event.error is None else event.error,
        )
    return entry._replace(body=_message_of(record))


def _message_of(record: logging.LogRecord) -> object:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - arguments that do not fit, or whose __str__ raises
        size = 1 << 20  # far above any limit that follows
        return f"{clean(record.msg, size)} % {clean(record.args, size)}"


def _entry_of_event(logger_name: str | None, method_name: str, event_dict: EventDict) -> _Entry:
    facts: dict[str, Any] = dict(event_dict)  # Any: whatever the host gave
    level_name = facts.pop("level", method_name)
    logger_name = facts.pop("logger", logger_name)
    return _Entry(
        time_unix_nano=clock.now(),
        level=_level_of(level_name),
        level_name=level_name,
        logger_name=logger_name,
        body=facts.pop("event", ""),
        error=_error_of(facts.pop("exc_info", method_name == "exception")),
        attributes=facts,
    )


def _error_of(exc_info: object) -> BaseException | None:
    """Return the exception that any of the accepted forms of `exc_info` means."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        found = exc_info[1] if len(exc_info) > 1 else None
        return found if isinstance(found, BaseException) else None
    return sys.exc_info()[1] if exc_info else None


def _level_of(name: object) -> int:
    """Return the number of a level's name; INFO for one that `logging` does not know."""
    if not isinstance(name, str):
        return logging.INFO
    key = "ERROR" if name == "exception" else name.upper()
    return logging.getLevelNamesMapping().get(key, logging.INFO)


def _severity_number(level: int) -> int:
    """Return OpenTelemetry's number: DEBUG is 5, INFO 9, WARNING 13, ERROR 17, CRITICAL 21.

    Levels between two of them get the numbers between; below DEBUG is 1 (TRACE), the end is 24.
    """
    if level < logging.DEBUG:
        return 1
    return min(4 * (level // 10) + 1 + min(level % 10, 3), 24)


def _redacted(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else REDACTED


def _trace_context() -> dict[str, Any]:  # Any: JSON values
    """Return trace_id, span_id and flags of the current span; nothing outside of one."""
    span = current_span()
    context = None if span is None else span.get_span_context()
    if context is None or not context.is_valid:
        return {}
    fields: dict[str, Any] = {  # Any: JSON values
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
    }
    if context.trace_flags:
        fields["flags"] = int(context.trace_flags)
    return fields

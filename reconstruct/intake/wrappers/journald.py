"""Entries of systemd's journal, as `journalctl -o json` writes them.

A message with odd bytes is a list of numbers, one over 4 KiB is null without `--all`, a field that
was given several times is a list. Docker's driver and the journal itself cut long lines.
"""

from typing import Final

from reconstruct.intake.json_text import Json
from reconstruct.intake.wrappers.layer import Layer, ObjectWrapper, process_id

__all__ = ["JOURNALD"]

_OF_THE_JOURNAL: Final = ("__REALTIME_TIMESTAMP", "__CURSOR", "_BOOT_ID", "__MONOTONIC_TIMESTAMP")
_LEFT_OUT: Final = "journalctl left the message out: it is over 4 KiB; use journalctl --all"


def _journald(value: dict[str, Json]) -> Layer | None:
    if not any(field in value for field in _OF_THE_JOURNAL):
        return None
    message = _bytes(value["MESSAGE"])
    if message is None:
        return Layer(b"", problem=_LEFT_OUT)
    get = value.get
    container = _text(get("CONTAINER_ID")) or _text(get("CONTAINER_ID_FULL"))
    is_piece = get("CONTAINER_PARTIAL_MESSAGE") == "true" or get("_LINE_BREAK") == "line-max"
    # the pid of a container's entry is that of the daemon that wrote it down
    pid = _text(get("_PID")) if container is None else None
    name = _text(get("CONTAINER_NAME")) or _text(get("SYSLOG_IDENTIFIER"))
    source = (
        *map(_text, map(get, ("_HOSTNAME", "_PID", "_STREAM_ID", "CONTAINER_PARTIAL_ID"))),
        container,
        _text(get("PRIORITY")),
    )
    return Layer(
        message,
        source=" ".join(part or "-" for part in source),
        server=name,
        host=_text(get("_HOSTNAME")),
        pid=process_id(pid),
        continues=is_piece,
    )


def _bytes(message: Json) -> bytes | None:
    """Return the message's bytes; of one given several times all of them, a line each."""
    if isinstance(message, str):
        return message.encode("utf-8", "replace")
    if not isinstance(message, list):
        return None
    if message and all(type(item) is int and 0 <= item <= 255 for item in message):
        return bytes(message)
    several = [_bytes(item) for item in message]
    return b"\n".join(text for text in several if text is not None) if any(several) else None


def _text(value: Json) -> str | None:
    """Return a field's text; of one given several times the first."""
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) and value else None


JOURNALD: Final = ObjectWrapper("journald", _journald, "MESSAGE")

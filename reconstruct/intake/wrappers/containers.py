"""What container runtimes write: docker's json-file, the CRI's line, and the names of both files.

Both cut a line every 16 KiB. Docker's pieces lack the line feed at their end, the CRI's say `P`
until one says `F`; the two streams of a container interleave.
"""

import re
from typing import Final

from reconstruct.intake.json_text import Json
from reconstruct.intake.wrappers.layer import Layer, LineWrapper, ObjectWrapper, Origin

__all__ = ["CRI", "DOCKER", "origin_of_file"]

_CRI: Final = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (stdout|stderr) "
    rb"([PF])(?::[^ ]*)?(?: |\Z)"
)
_POD_FILE: Final = re.compile(
    r"/pods/[^/]+_(?P<pod>[^/_]+)_[^/_]+/(?P<container>[^/]+)/\d+\.log[^/]*\Z"
    r"|/containers/(?P<pod2>[^/_]+)_[^/_]+_(?P<container2>[^/]+)-[0-9a-f]{64}\.log[^/]*\Z"
)
_DOCKER_FILE: Final = re.compile(r"/containers/(?P<id>[0-9a-f]{12})[0-9a-f]{52}/[^/]*-json\.log")
_COMPOSE_SERVICE: Final = "com.docker.compose.service"


def _docker(value: dict[str, Json]) -> Layer | None:
    """`{"log":"…\\n","stream":"stdout","time":"…"}`; a raw record never has all three."""
    log, stream = value.get("log"), value.get("stream")
    if not isinstance(log, str) or stream not in ("stdout", "stderr") or "time" not in value:
        return None
    labels = value.get("attrs")
    service = labels.get(_COMPOSE_SERVICE) if isinstance(labels, dict) else None
    return Layer(
        log.removesuffix("\n").encode("utf-8", "replace"),
        source=stream,
        server=service if isinstance(service, str) else None,
        continues=not log.endswith("\n"),
    )


def _cri(line: bytes) -> Layer | None:
    match = _CRI.match(line)
    if match is None:
        return None
    return Layer(line[match.end() :], source=match[1].decode(), continues=match[2] == b"P")


DOCKER: Final = ObjectWrapper("docker", _docker, "log")
CRI: Final = LineWrapper("cri", _cri, b"0123456789")


def origin_of_file(path: str) -> Origin:
    """Return what the name of a runtime's file says: the container, and the pod or the id, which
    are its host name unless it was given another."""
    if (match := _POD_FILE.search(path)) is not None:
        container = match["container"] or match["container2"]
        return Origin(server=container, host=match["pod"] or match["pod2"])
    if (match := _DOCKER_FILE.search(path)) is not None:
        return Origin(host=match["id"])
    return Origin()

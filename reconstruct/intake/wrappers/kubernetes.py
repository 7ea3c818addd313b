"""Lines of several pods in one stream: `kubectl logs --prefix`, and stern in its forms."""

import re
from typing import Final

from reconstruct.intake.json_text import Json, encode
from reconstruct.intake.wrappers.layer import Layer, LineWrapper, ObjectWrapper

__all__ = ["KUBECTL", "STERN", "STERN_JSON", "STERN_NAMESPACED"]

_KUBECTL: Final = re.compile(rb"\[pod/([^/\]\s]+)/([^\]\s]+)\](?: |\Z)")
_STERN: Final = re.compile(rb"([a-z0-9][a-z0-9.-]*) ([a-z0-9][a-z0-9-]*)(?: |\Z)")
_NAMESPACE: Final = re.compile(rb"[a-z0-9][a-z0-9-]* ")
# fmt: off
_STERN_FIELDS: Final = frozenset({
    "annotations", "container", "containerName", "labels", "message", "namespace", "nodeName",
    "pod", "podName",
})
# fmt: on


def _kubectl(line: bytes) -> Layer | None:
    match = _KUBECTL.match(line)
    return None if match is None else _of_pod(line[match.end() :], match[1], match[2])


def _stern(line: bytes) -> Layer | None:
    match = _STERN.match(line)
    return None if match is None else _of_pod(line[match.end() :], match[1], match[2])


def _stern_namespaced(line: bytes) -> Layer | None:
    """With several namespaces theirs comes first."""
    match = _NAMESPACE.match(line)
    return None if match is None else _stern(line[match.end() :])


def _of_pod(payload: bytes, pod: bytes, container: bytes) -> Layer:
    host, server = pod.decode("utf-8", "replace"), container.decode("utf-8", "replace")
    return Layer(payload, source=f"{host}/{server}", server=server, host=host)


def _stern_json(value: dict[str, Json]) -> Layer | None:
    """`--output json`, and `extjson`, where the message may stand as the object it is.

    Raises `Rounded` and `NotJson` as `json_text.encode` does.
    """
    if not value.keys() <= _STERN_FIELDS:
        return None
    pod = value.get("podName", value.get("pod"))
    container = value.get("containerName", value.get("container"))
    message = value.get("message")
    if not isinstance(pod, str) or not isinstance(container, str) or message is None:
        return None
    text = message if isinstance(message, str) else encode(message)
    payload = text.removesuffix("\n").encode("utf-8", "replace")
    return Layer(payload, source=f"{pod}/{container}", server=container, host=pod)


KUBECTL: Final = LineWrapper("kubectl", _kubectl, b"[")
STERN: Final = LineWrapper("stern", _stern, b"", is_vague=True)
STERN_NAMESPACED: Final = LineWrapper("stern", _stern_namespaced, b"", is_vague=True)
STERN_JSON: Final = ObjectWrapper("stern", _stern_json, "message")

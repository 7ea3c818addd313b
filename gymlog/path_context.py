"""The part of a request's path that is context, not address: taken off, and put back on redirects.

`/ng-rollout/{rollout_id}/…` names the rollout (with a `training-token-capture` segment after it
when its model calls are captured), `/ng-trace/{traceparent}/…` the caller's span, for callers
that can only choose a URL. They may stand in any order, below the application's root path.
"""

import re
from collections.abc import Iterable, MutableMapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from gymlog import rollout

__all__ = ["REDIRECTS", "TRACE_PREFIX", "PathContext", "split_root", "take_off"]

TRACE_PREFIX: Final = "/ng-trace/"
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
"""Status codes whose `location` is the next address of the same request."""

_COMMON_START: Final = "/ng-"
_CAPTURE_PREFIX: Final = "/training-token-capture/"

Headers = Iterable[tuple[bytes, bytes]]

_only_rollout = re.compile(
    rf"{rollout.PATH_PREFIX}({rollout.ID_PATTERN})"
    rf"(/(?!{_COMMON_START[1:]}|{_CAPTURE_PREFIX[1:]}).*)",
    re.DOTALL,
).fullmatch


class PathContext(NamedTuple):
    """What the segments said, and the segments themselves as they were sent."""

    rollout_id: str | None
    traceparent: bytes | None
    root: bytes
    prefix: bytes

    def put_back(self, headers: Headers, request_headers: Headers) -> Headers:
        """Return a redirect's headers; when it stays on this host, it keeps the segments."""
        host = next((value for name, value in request_headers if name == b"host"), None)
        return [
            (name, self._with_prefix(value, host) if name.lower() == b"location" else value)
            for name, value in headers
        ]

    def _with_prefix(self, location: bytes, host: bytes | None) -> bytes:
        try:
            url = urlsplit(location)
        except ValueError:
            return location
        is_here = url.path.startswith(self.root + b"/") and url.netloc in (b"", host)
        if not is_here or url.path.startswith(self.root + self.prefix + b"/"):
            return location
        path = self.root + self.prefix + url.path[len(self.root) :]
        return url._replace(path=path).geturl()


def split_root(path: str, root: str) -> tuple[str, str]:
    """Split a path into the application's root path and the rest, which begins with `/`.

    Servers differ in whether the path has the root in it; without it the root given back is empty.
    """
    root = root.rstrip("/")
    if not root or not f"{path}/".startswith(f"{root}/"):
        return "", path
    return root, path[len(root) :] or "/"


def take_off(scope: MutableMapping[str, Any]) -> PathContext | None:  # Any: an ASGI scope
    """Take context segments off `path` and `raw_path`; None, at one text search, without any."""
    path: str = scope["path"]
    if _COMMON_START not in path:
        return None
    root_path = scope.get("root_path", "")
    if not root_path and (common := _take_off_rollout(scope, path)) is not None:
        return common
    root, rest = split_root(path, root_path) if root_path else ("", path)
    rollout_id = traceparent = None
    while rest.startswith(_COMMON_START):
        if (split := rollout.split_path(rest)) is not None:
            rollout_id, rest = split
            if rest.startswith(_CAPTURE_PREFIX):
                rest = rest[len(_CAPTURE_PREFIX) - 1 :]
        elif rest.startswith(TRACE_PREFIX):
            traceparent, _, rest = rest[len(TRACE_PREFIX) :].partition("/")
            rest = f"/{rest}"
        else:
            break
    if rollout_id is None and traceparent is None:
        return None
    scope["path"] = root + rest
    prefix = path[len(root) :].removesuffix(rest)
    raw_root, raw_prefix = root.encode(), prefix.encode("utf-8", "replace")
    if raw_path := scope.get("raw_path"):
        raw_root, raw_prefix, scope["raw_path"] = _split_raw(raw_path, root, prefix)
    return PathContext(
        rollout_id,
        None if traceparent is None else traceparent.encode("utf-8", "replace"),
        raw_root,
        raw_prefix,
    )


def _take_off_rollout(
    scope: MutableMapping[str, Any],  # Any: an ASGI scope
    path: str,
) -> PathContext | None:
    """Take off a rollout id and nothing else, from a path without escapes: the common case."""
    match = _only_rollout(path)
    raw_path = scope.get("raw_path")
    if match is None or raw_path != path.encode():
        return None
    rollout_id, scope["path"] = match.groups()
    end = match.end(1)
    scope["raw_path"] = raw_path[end:]
    return PathContext(rollout_id, None, b"", raw_path[:end])


def _split_raw(raw_path: bytes, root: str, prefix: str) -> tuple[bytes, bytes, bytes]:
    """Split a percent-encoded path like the decoded one, by its segments."""
    raw_root, raw_prefix = root.encode(), prefix.encode("utf-8", "replace")
    if b"%" not in raw_path and raw_path.startswith(raw_root + raw_prefix):
        return raw_root, raw_prefix, raw_root + raw_path[len(raw_root + raw_prefix) :] or b"/"
    has_root = root and unquote_to_bytes(raw_path).startswith(root.encode() + b"/")
    root_end = 1 + root.count("/") if has_root else 1
    prefix_end = root_end + prefix.count("/")
    segments = raw_path.split(b"/")
    raw_prefix = b"/".join([b"", *segments[root_end:prefix_end]])
    rest = b"/".join([b"", *segments[prefix_end:]]) or b"/"
    raw_root = b"/".join(segments[:root_end])
    return raw_root, raw_prefix, raw_root + rest

"""The rollout id: which rollout the current work belongs to, and how paths and bodies carry it.

One ContextVar holds it within a process; the path `/ng-rollout/{rollout_id}/…` and the W3C
baggage member `nemo.gym.rollout.id` carry it between processes. Standard library only.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Final

from gymlog.errors import InvalidRolloutIdError

__all__ = [
    "ID_PATTERN",
    "PATH_PREFIX",
    "current_rollout_id",
    "is_valid_rollout_id",
    "reset",
    "rollout_context",
    "rollout_id_from_body",
    "rollout_path",
    "set_rollout_id",
    "split_path",
]

PATH_PREFIX: Final = "/ng-rollout/"
MAX_LENGTH: Final = 256

ID_PATTERN: Final = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_LENGTH - 1}}}"
_match = re.compile(ID_PATTERN).fullmatch

_rollout_id: ContextVar[str | None] = ContextVar("nemo_gym_rollout_id", default=None)

current_rollout_id = _rollout_id.get
"""Return the id of the rollout that the current work belongs to, or None."""


def set_rollout_id(rollout_id: str | None) -> Token[str | None]:
    """Set the current rollout; give the token to `reset` when the work is over."""
    return _rollout_id.set(rollout_id)


def reset(token: Token[str | None]) -> None:
    """Undo `set_rollout_id`; in another context than it was set in, do nothing."""
    try:
        _rollout_id.reset(token)
    except (ValueError, RuntimeError):
        return


@contextmanager
def rollout_context(rollout_id: str | None) -> Iterator[None]:
    """Make `rollout_id` the current one for a block; raises InvalidRolloutIdError."""
    if rollout_id is not None and not is_valid_rollout_id(rollout_id):
        raise InvalidRolloutIdError(_complaint(rollout_id))
    token = _rollout_id.set(rollout_id)
    try:
        yield
    finally:
        reset(token)


def is_valid_rollout_id(rollout_id: object) -> bool:
    """Say whether an id can stand in a path: letters, digits, `.`, `_`, `-`, at most 256."""
    return isinstance(rollout_id, str) and _match(rollout_id) is not None


def rollout_id_from_body(body: Mapping[str, object]) -> str | None:
    """Return the id that a `/run` body names, or None.

    `_ng_rollout_id` as it is, else `{_ng_task_index}-{_ng_rollout_index}`, with `-a{n}` when
    `_ng_attempt_index` is above 0. Raises InvalidRolloutIdError.
    """
    explicit = body.get("_ng_rollout_id")
    if explicit is not None:
        if not isinstance(explicit, str) or not is_valid_rollout_id(explicit):
            raise InvalidRolloutIdError(_complaint(explicit))
        return explicit
    task, rollout = body.get("_ng_task_index"), body.get("_ng_rollout_index")
    if not (_is_index(task) and _is_index(rollout)):
        return None
    attempt = body.get("_ng_attempt_index")
    suffix = f"-a{attempt}" if _is_index(attempt) and attempt != 0 else ""
    rollout_id = f"{task}-{rollout}{suffix}"
    if len(rollout_id) > MAX_LENGTH:
        raise InvalidRolloutIdError(_complaint(rollout_id))
    return rollout_id


def rollout_path(path: str, rollout_id: str | None = None) -> str:
    """Return `path` behind `/ng-rollout/{rollout_id}`; by default the current rollout's.

    Without a rollout the path stays as it is. Raises InvalidRolloutIdError.
    """
    if rollout_id is None:
        rollout_id = _rollout_id.get()
    if rollout_id is None:
        return path
    if not is_valid_rollout_id(rollout_id):
        raise InvalidRolloutIdError(_complaint(rollout_id))
    return f"{PATH_PREFIX}{rollout_id}/{path.lstrip('/')}"


def split_path(path: str) -> tuple[str, str] | None:
    """Split `/ng-rollout/12-0/v1/responses` into `("12-0", "/v1/responses")`.

    Any other path, and one whose id is not valid, gives None.
    """
    if not path.startswith(PATH_PREFIX):
        return None
    rollout_id, _, rest = path[len(PATH_PREFIX) :].partition("/")
    return (rollout_id, f"/{rest}") if is_valid_rollout_id(rollout_id) else None


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _complaint(rollout_id: object) -> str:
    return (
        f"rollout id {str(rollout_id)[:80]!r} cannot stand in a URL path; use at most "
        f"{MAX_LENGTH} letters, digits, '.', '_' and '-', beginning with a letter or digit"
    )

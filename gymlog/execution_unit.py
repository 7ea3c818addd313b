"""What a span runs in: its asyncio task, or where there is none its thread."""

import threading
from asyncio import Task
from typing import Any

from gymlog.values import clean_text

__all__ = ["name_of"]


def name_of(task: Task[Any] | None, characters: int) -> str:  # Any: a task of anything
    """Return the name of a task, or of this thread; type and address of one that has none to say.

    Whoever sets a task factory may have tasks of his own. At most `characters` of it are kept.
    """
    try:
        name = threading.current_thread().name if task is None else task.get_name()
    except Exception:  # noqa: BLE001 - a task of the host may raise anything
        name = f"{type(task).__name__} {id(task):#x}"
    return clean_text(name, characters)

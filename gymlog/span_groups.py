"""Span groups: which families of call sites are open, tested by one frozenset membership.

Names and presets are NeMo Gym's. An unknown name in a spec never raises: it is reported once,
with the nearest known name, and ignored.
"""

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from gymlog.notices import notice

__all__ = [
    "GymSpanGroup",
    "SpanGroup",
    "close_all",
    "is_span_group_enabled",
    "open_groups",
    "open_now",
    "restore",
    "tell_unknown",
]


class SpanGroup:
    """Groups of training code; no gym call site emits under them, `all` reaches them."""

    JOB: Final = "job"
    CHECKPOINT: Final = "checkpoint"
    EVALUATE: Final = "evaluate"
    FORWARD_BACKWARD: Final = "forward_backward"
    LOAD_CHECKPOINT: Final = "load_checkpoint"
    MODEL_INIT: Final = "model_init"
    OPTIMIZER: Final = "optimizer"
    STEP: Final = "step"

    ALL_GROUPS: ClassVar[frozenset[str]] = frozenset(
        {
            JOB,
            CHECKPOINT,
            EVALUATE,
            FORWARD_BACKWARD,
            LOAD_CHECKPOINT,
            MODEL_INIT,
            OPTIMIZER,
            STEP,
        }
    )
    _PRESETS: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({"all": ALL_GROUPS})

    @classmethod
    def resolve(cls, spec: str) -> frozenset[str]:
        """Return the groups of a spec such as `"default,sandbox"`.

        A spec is a comma list of presets and groups in any case; unknown names are left out
        (`unknown` lists them).
        """
        groups: set[str] = set()
        for name in cls._names(spec):
            groups |= cls._PRESETS.get(name, frozenset({name} & cls.ALL_GROUPS))
        return frozenset(groups)

    @classmethod
    def unknown(cls, spec: str) -> dict[str, str | None]:
        """Return each unknown name of a spec with the nearest known one, if any is near."""
        known = [*cls._PRESETS, *sorted(cls.ALL_GROUPS)]
        return {
            name: next(iter(difflib.get_close_matches(name, known, n=1)), None)
            for name in cls._names(spec)
            if name not in known
        }

    @classmethod
    def presets(cls) -> Mapping[str, frozenset[str]]:
        """Return the presets by name."""
        return cls._PRESETS

    @staticmethod
    def _names(spec: str) -> list[str]:
        return [name for part in spec.split(",") if (name := part.strip().lower())]


class GymSpanGroup(SpanGroup):
    """Groups of a gym's call sites, and the presets that choose among them."""

    AGENT: Final = "agent"
    """Agent server: gym.agent.responses."""
    HTTP_CLIENT: Final = "http_client"
    """CLIENT spans of `request`."""
    MODEL_CALL: Final = "model_call"
    """Model server: gym.model.*."""
    ROLLOUT: Final = "rollout"
    """gym.rollout, one per attempt at a task."""
    SANDBOX: Final = "sandbox"
    """gym.sandbox.*."""
    SERVER: Final = "server"
    """SERVER spans of the ingress."""
    STARTUP: Final = "startup"
    """gym.startup* and gym.server.startup*."""
    VERIFY: Final = "verify"
    """Resources server: gym.verify."""

    ALL_GROUPS: ClassVar[frozenset[str]] = SpanGroup.ALL_GROUPS | {
        AGENT,
        HTTP_CLIENT,
        MODEL_CALL,
        ROLLOUT,
        SANDBOX,
        SERVER,
        STARTUP,
        VERIFY,
    }
    CROSS_PROCESS_SPINE: ClassVar[frozenset[str]] = frozenset({SERVER, HTTP_CLIENT, ROLLOUT})
    """What one trace per rollout over all processes needs."""
    _PRESETS: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType(
        {
            "default": CROSS_PROCESS_SPINE | {SpanGroup.JOB, STARTUP},
            "per_rollout": CROSS_PROCESS_SPINE | {VERIFY, AGENT, MODEL_CALL},
            "all": ALL_GROUPS,
        }
    )


_open: frozenset[str] = frozenset()


def is_span_group_enabled(group: str) -> bool:
    """Say whether a group's call sites are open: one frozenset test."""
    return group in _open


def open_groups(spec: str) -> frozenset[str]:
    """Open the groups of `spec`, close all others, report unknown names; return what is open."""
    global _open
    tell_unknown(spec)
    _open = GymSpanGroup.resolve(spec)
    return _open


def tell_unknown(spec: str) -> None:
    """Tell on stderr which names of `spec` are not known, each with the nearest known one."""
    for name, nearest in GymSpanGroup.unknown(spec).items():
        meant = f"did you mean {nearest!r}? " if nearest else ""
        notice(
            f"span group {name}",
            f"span_groups has no group or preset {name!r}; ignored. {meant}Known: "
            f"{', '.join([*GymSpanGroup.presets(), *sorted(GymSpanGroup.ALL_GROUPS)])}",
        )


def close_all() -> None:
    """Close every group."""
    global _open
    _open = frozenset()


def open_now() -> frozenset[str]:
    """Return the groups that are open."""
    return _open


def restore(groups: frozenset[str]) -> None:
    """Open exactly these groups."""
    global _open
    _open = groups

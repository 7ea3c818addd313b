"""Whether a trace is recorded: OTEL_TRACES_SAMPLER, decided at the root and handed on.

A sampler is a function of the trace id and the parent's W3C flags (None at a root). The parent's
decision holds in all `parentbased_*` samplers; at a root within a rollout the rollout's id decides
in place of the trace's. So a rollout is kept or dropped whole, also when it is several traces in
several processes, and the same rollouts are kept in every run.
Source: OpenTelemetry specification, general SDK configuration and TraceIdRatioBased.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from gymlog.notices import notice
from gymlog.record import FLAG_SAMPLED
from gymlog.rollout import current_rollout_id
from gymlog.settings import SAMPLER, SAMPLERS

__all__ = ["DEFAULT", "Sampler", "sampler_from"]

Sampler = Callable[[str, int | None], bool]

DEFAULT: Final = SAMPLER.default


def always_on(trace_id: str, parent_flags: int | None) -> bool:
    """Record everything."""
    del trace_id, parent_flags
    return True


def always_off(trace_id: str, parent_flags: int | None) -> bool:
    """Record nothing."""
    del trace_id, parent_flags
    return False


def trace_id_ratio(ratio: float) -> Sampler:
    """Return a sampler that records a share of all trace ids, the same ids in every process."""
    bound = round(ratio * (1 << 64))

    def sample(trace_id: str, parent_flags: int | None) -> bool:
        del parent_flags
        return int(trace_id[16:], 16) < bound

    return sample


def parent_based(root: Sampler) -> Sampler:
    """Return a sampler that follows the parent and asks `root` where there is none."""

    def sample(trace_id: str, parent_flags: int | None) -> bool:
        if parent_flags is None:
            rollout_id = current_rollout_id()
            return root(trace_id if rollout_id is None else _digits_of(rollout_id), None)
        return bool(parent_flags & FLAG_SAMPLED)

    return sample


def _digits_of(rollout_id: str) -> str:
    """Return 32 hex digits that are spread evenly and the same in every process."""
    return hashlib.blake2b(rollout_id.encode("utf-8", "replace"), digest_size=16).hexdigest()


def sampler_from(name: str, argument: str) -> Sampler:
    """Return the sampler of OTEL_TRACES_SAMPLER and its _ARG; a bad one is told and defaulted."""
    name = name.strip().lower() or DEFAULT
    if name not in SAMPLERS:
        notice(
            "OTEL_TRACES_SAMPLER",
            f"OTEL_TRACES_SAMPLER={name!r} is not known; accepted: {', '.join(SAMPLERS)}. "
            f"Using {DEFAULT}.",
        )
        name = DEFAULT
    base = name.removeprefix("parentbased_")
    sampler: Sampler
    if base == "traceidratio":
        sampler = trace_id_ratio(_ratio(argument))
    else:
        sampler = always_on if base == "always_on" else always_off
    return sampler if base == name else parent_based(sampler)


def _ratio(argument: str) -> float:
    try:
        ratio = float(argument.strip() or "1")
    except ValueError:
        ratio = -1.0
    if 0.0 <= ratio <= 1.0:
        return ratio
    notice(
        "OTEL_TRACES_SAMPLER_ARG",
        f"OTEL_TRACES_SAMPLER_ARG={argument!r} is not a number from 0 to 1. Using 1.",
    )
    return 1.0

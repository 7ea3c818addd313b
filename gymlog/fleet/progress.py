"""How far a run is: what the driver tells the supervisor."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Progress"]


@dataclass(slots=True)
class Progress:
    """Counts of rollouts; every rollout ends as done or under a reason of `failures`."""

    in_flight: int = 0
    done: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    is_over: bool = False

    @property
    def failed(self) -> int:
        return self.failures.total()

    @property
    def ended(self) -> int:
        return self.done + self.failed

    def message(self) -> dict[str, object]:
        """Return what `of` reads."""
        return {
            "in_flight": self.in_flight,
            "done": self.done,
            "failures": dict(self.failures),
            "is_over": self.is_over,
        }

    @classmethod
    def of(cls, message: dict[str, Any]) -> "Progress":  # Any: JSON
        """Read `message` again."""
        return cls(
            in_flight=message["in_flight"],
            done=message["done"],
            failures=Counter(message["failures"]),
            is_over=message["is_over"],
        )

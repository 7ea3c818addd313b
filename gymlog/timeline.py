"""A start as one span that is tiled by its stages: each begins where the one before it ends.

A start begins before telemetry is on, so its times are noted first and its spans opened later,
with the times that they had: what is over is written at once, what goes on stays open, so that a
start that hangs is in the log. No span of a start is ever the current one: a server's background
tasks would stay its children for as long as the server lives. Times are ns since 1970 and never
run backwards.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gymlog import clock, sites
from gymlog.semconv import EXCEPTION_MESSAGE, STARTUP_OUTCOME, STARTUP_STAGE
from gymlog.span_groups import GymSpanGroup, is_span_group_enabled

if TYPE_CHECKING:
    from gymlog.spans import Span
    from gymlog.tracer import Tracer

__all__ = ["Outcome", "Stage", "Timeline", "outcome_of"]

_LEAST_SIGNAL_EXIT: Final = 128
"""An exit code from here on says that a signal ended the process."""


class Outcome(StrEnum):
    """Values of nemo.gym.startup.outcome."""

    READY = "ready"
    TIMEOUT = "timeout"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


def outcome_of(error: BaseException) -> Outcome:
    """Return how a start ended that this exception has ended."""
    if isinstance(error, TimeoutError):
        return Outcome.TIMEOUT
    if isinstance(error, SystemExit):
        code = error.code or 0
        is_failure = not isinstance(code, int) or 0 < code < _LEAST_SIGNAL_EXIT
        return Outcome.FAILED if is_failure else Outcome.INTERRUPTED
    is_stop = isinstance(error, KeyboardInterrupt | GeneratorExit)
    is_stop = is_stop or type(error).__name__ == "CancelledError"  # asyncio need not be loaded
    return Outcome.INTERRUPTED if is_stop else Outcome.FAILED


class Stage:
    """One part of a start; `ended_ns` counts once it is over."""

    __slots__ = ("began_ns", "ended_ns", "name", "span")

    def __init__(self, name: str, began_ns: int) -> None:
        self.name = name
        self.began_ns = self.ended_ns = began_ns
        self.span: Span | None = None


class Timeline:
    """A start and its stages; nothing but a few notes while telemetry or its group is off."""

    def __init__(
        self,
        name: str,
        attributes: Mapping[str, object],
        *,
        began_ns: int | None = None,
        parent: "Timeline | None" = None,
        traceparent: str = "",
    ) -> None:
        """Begin at `began_ns` (now when None, and when it lies ahead).

        The parent is another start of this process, or a span of another process by its
        `traceparent`; without either the start is a trace of its own.
        """
        self.name = name
        now = clock.now()
        self.began_ns = self.ended_ns = now if began_ns is None else min(began_ns, now)
        self.outcome: Outcome | None = None
        self.stages: list[Stage] = []
        self.span: Span | None = None
        self._attributes = attributes
        self._parent = parent
        self._traceparent = traceparent

    def stage(self, name: str, began_ns: int | None = None) -> None:
        """Begin a stage at `began_ns` (now when None); the first one begins with the start."""
        if self.outcome is not None:
            return
        began_ns = clock.now() if began_ns is None else min(began_ns, clock.now())
        began_ns = self._end_stage(began_ns) if self.stages else self.began_ns
        self.stages.append(Stage(name, began_ns))
        self.open()

    def end(self, outcome: Outcome, error: BaseException | str | None = None) -> None:
        """End the start; what it was in the middle of is marked unless it is ready."""
        if self.outcome is not None:
            return
        self.open()
        self.outcome = outcome
        spans = [self.stages[-1].span] if self.stages and outcome is not Outcome.READY else []
        for span in (*spans, self.span):
            if span is not None:
                self._mark(span, error)
        now = max(clock.now(), self.began_ns)
        self.ended_ns = self._end_stage(now) if self.stages else now
        if self.span is not None:
            self.span.end(self.ended_ns)

    def open(self) -> None:
        """Open every span that can be by now."""
        tracer = sites.installed_tracer()
        if tracer is None or self.outcome is not None:
            return
        if not is_span_group_enabled(GymSpanGroup.STARTUP):
            return
        if self.span is None:
            self.span = self._open_own(tracer)
        for stage in self.stages:
            if stage.span is None:
                attributes = {**self._attributes, STARTUP_STAGE: stage.name}
                name = f"{self.name}.{stage.name}"
                stage.span = _open_under(self.span, tracer, name, attributes, stage.began_ns)
                if stage is not self.stages[-1]:
                    stage.span.end(stage.ended_ns)

    def _open_own(self, tracer: "Tracer") -> "Span":
        if self._parent is not None:
            self._parent.open()
            if self._parent.span is not None:
                return _open_under(
                    self._parent.span, tracer, self.name, self._attributes, self.began_ns
                )
        from gymlog.propagation import extract

        caller = extract([(b"traceparent", self._traceparent.encode("utf-8", "replace"))])
        return tracer.open_span(
            self.name,
            attributes=self._attributes,
            parent=caller,
            is_root=caller is None,
            start_time=self.began_ns,
        )

    def _end_stage(self, ended_ns: int) -> int:
        """End the stage that goes on, and return when it did."""
        stage = self.stages[-1]
        stage.ended_ns = max(ended_ns, stage.began_ns)
        if stage.span is not None:
            stage.span.end(stage.ended_ns)
        return stage.ended_ns

    def _mark(self, span: "Span", error: BaseException | str | None) -> None:
        """Say on a span how it ended, and in which stage when that was no good end."""
        span.set_attribute(STARTUP_OUTCOME, str(self.outcome))
        if self.outcome is Outcome.READY:
            return
        where = f" in {self.stages[-1].name}" if self.stages else ""
        if isinstance(error, Exception):
            span.fail(error)  # with an event; a signal or a cancellation needs none
        reason = _reason(error)
        span.set_status("ERROR", f"{self.outcome}{where}{': ' if reason else ''}{reason}")


def _reason(error: BaseException | str | None) -> str:
    """Return why, in words that leak no more than a span's exception does."""
    if not isinstance(error, BaseException):
        return error or ""
    from gymlog.exceptions import exception_attributes

    message = exception_attributes(error)[EXCEPTION_MESSAGE]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _open_under(
    parent: "Span",
    tracer: "Tracer",
    name: str,
    attributes: Mapping[str, object],
    began_ns: int,
) -> "Span":
    """Open a span below another one of this process, whatever is current."""
    from opentelemetry.context import Context
    from opentelemetry.trace import set_span_in_context

    context = set_span_in_context(parent, Context())
    return tracer.open_span(name, attributes=attributes, context=context, start_time=began_ns)

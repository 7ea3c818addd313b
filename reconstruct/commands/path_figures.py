"""What `reconstruct path` tells of a path, of its spans, and of all paths together."""

from typing import Final

from reconstruct.console import Column

__all__ = ["LENGTH", "NAME", "NAMES", "OFFSET", "SECTIONS", "SERVICE", "SHARE", "SPANS"]

NAME: Final = Column("name", "SPAN", meaning="Name of the span; - where none was running.")
SERVICE: Final = Column("service_name", "SERVICE", meaning="service.name of its process.")
OFFSET: Final = Column("offset_ns", "AT", "duration", "Start of the section after the path's.")
LENGTH: Final = Column("duration_ns", "LENGTH", "duration", "End of the section less its start.")
SHARE: Final = Column("share", "SHARE", "share", "Its part of the path, or of all paths together.")
_BLAME: Final = Column("blame_ns", "BLAME", "duration", "Time on the critical path.")
_ASSUMED: Final = Column(
    "assumed",
    "ASSUMED",
    meaning="Children of the span, or of one above it, overlap, and nothing says which was waited "
    "for: the one that ended last is taken.",
)
_IDS: Final = (
    Column("trace_id", "TRACE", meaning="32 lower-case hex digits."),
    Column("span_id", "SPAN ID", meaning="16 lower-case hex digits."),
    Column("occurrence", "OCCURRENCE", meaning="As in spans."),
)
SECTIONS: Final = (
    OFFSET,
    LENGTH,
    SHARE,
    NAME,
    SERVICE,
    _ASSUMED,
    *_IDS,
    Column("root_span_id", "ROOT", meaning="The span whose end is explained; - is the rollout."),
    Column("start_time_unix_nano", "START", "instant", "Start of the section, ns since 1970."),
    Column("end_time_unix_nano", "END", "instant", "End of the section, ns since 1970."),
)
SPANS: Final = (
    _BLAME,
    SHARE,
    Column(
        "drag_ns",
        "DRAG",
        "duration",
        "How much shorter it could have been before another span would have been waited for in "
        "its place.",
    ),
    Column(
        "slack_ns",
        "SLACK",
        "duration",
        "How much longer it could have been before it would have been waited for; - where nobody "
        "would have.",
    ),
    Column("span_ns", "DURATION", "duration", "End of the span less its start."),
    NAME,
    SERVICE,
)
NAMES: Final = (
    _BLAME,
    SHARE,
    Column("mean_ns", "MEAN", "duration", "Blame divided by the number of all paths."),
    Column(
        "p95_ns",
        "P95",
        "duration",
        "95 % of the paths that such spans are on blame them for at most this.",
    ),
    Column("max_ns", "MAX", "duration", "The most that a path blames them for."),
    Column("path_count", "PATHS", "count", "Rollouts, else traces, on whose path such spans are."),
    Column("assumed_count", "ASSUMED", "count", "Of these, paths on which they are assumed to be."),
    NAME,
    SERVICE,
)

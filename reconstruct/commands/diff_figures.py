"""What each figure of `reconstruct diff` means: those of cohorts, of attributes, and of trees."""

from typing import Final

from reconstruct.console import Column

__all__ = ["FIGURES"]


def _both(key: str, heading: str, meaning: str) -> list[Column]:
    """Make two columns of a figure, in A and in B."""
    return [
        Column(
            key.format(side), heading.format(side.upper()), "text", f"{meaning} in {side.upper()}."
        )
        for side in "ab"
    ]


FIGURES: Final = [
    Column(
        "compared", "", meaning="What A and B are, and how many rollouts, or traces, are in each."
    ),
    Column("paths", "", meaning="A row each: call paths, the largest change of the mean first."),
    Column(
        "part",
        "",
        meaning="path; whole: the rollout from its first span to its last; outside: "
        "what no span of it is to blame for, the time between its traces, negative where they "
        "overlap. The changes of all paths and of outside add up to the whole's.",
    ),
    Column("service_name", "", meaning="service.name of the span."),
    Column("name", "", meaning="Name of the span."),
    Column("call_path", "", meaning="Key of call_paths: services and names down to the span."),
    Column("parent_call_path", "", meaning="The path that ends one span above; null at the top."),
    Column("depth", "", meaning="Spans above it."),
    Column("calls", "", meaning="The path in words, the top first."),
    *_both(
        "rollouts_{}",
        "",
        "Rollouts, or traces, that have the path; of an attribute, that have such a span",
    ),
    *_both("spans_{}", "SPANS", "Spans per rollout"),
    *_both("failed_{}", "", "Share of these spans with status ERROR"),
    *_both("duration_p50_{}_ns", "", "Median duration of the finished spans, ns,"),
    *_both("duration_p95_{}_ns", "", "95 % of the finished spans are at most this long, ns,"),
    *_both("self_time_{}_ns", "", "Self time per rollout, ns, or of the span of a tree,"),
    *_both("blame_{}_ns", "{}", "Time on the critical path per rollout, ns, its mean"),
    Column("difference_ns", "CHANGE", meaning="Blame in B less that in A, ns."),
    Column("ratio", "", meaning="Blame in B by that in A."),
    Column(
        "low_ns",
        "INTERVAL",
        meaning="Lower end of the interval of the difference, ns: Welch's, "
        "so wide that those of all paths hold together with 95 %. Null with fewer than 5 "
        "rollouts on a side.",
    ),
    Column("high_ns", "INTERVAL", meaning="Upper end of that interval, ns."),
    Column(
        "is_real",
        "●",
        meaning="The interval leaves 0 out; of an attribute: chance explains the "
        "distance in one of 20 such lists at most. Null with fewer than 5 rollouts on a side.",
    ),
    Column(
        "attributes",
        "",
        meaning="A row each: values, the greatest distance first; of two trees: "
        "what an attribute says in A and in B, where that differs.",
    ),
    Column(
        "kind",
        "",
        meaning="value; number: of an attribute of numbers; id: a value for nearly "
        "every rollout, or what names a process, a run or an address: not compared. Of a "
        "span: its kind.",
    ),
    Column("scope", "", meaning="span: an attribute of spans; process: of the resource."),
    Column("key", "", meaning="Key of the attribute; status: the span's."),
    Column("value", "", meaning="Its value; null for a number or an id."),
    Column("value_count", "", meaning="Different values of the attribute."),
    *_both(
        "share_{}", "", "Share of the rollouts with such a span, or process, that have the value"
    ),
    *_both(
        "p50_{}", "", "Median over the rollouts of an attribute of numbers, of its mean in each,"
    ),
    Column(
        "distance",
        "",
        meaning="Difference of the shares; for numbers, the greatest of those "
        "with at most some value (Kolmogorov and Smirnov). 0 is none, 1 is all.",
    ),
    Column(
        "is_exact",
        "",
        meaning="False when so many siblings of two trees differ that some may be matched better.",
    ),
    Column("counts", "", meaning="Of two trees: spans that are unchanged, or have changed so."),
    Column("spans", "", meaning="Of two trees: a row each span, parents first."),
    Column(
        "changes",
        "",
        meaning="added, removed, moved (to another parent), slower, faster "
        "(by more than 1 ms and the tolerance), status, attributes.",
    ),
    *_both("trace_id_{}", "", "32 lower-case hex digits, of the span"),
    *_both("span_id_{}", "", "16 lower-case hex digits, of the span"),
    *_both("duration_{}_ns", "", "Duration of the span, ns,"),
    *_both("status_{}", "", "Its status"),
]

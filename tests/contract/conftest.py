"""What comes out of OpenTelemetry's SDK and of gymlog, in one form that can be compared.

Ids become names, times that were not given become "now". `_comparable` lists what gymlog does
otherwise on purpose.
"""

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, sampling
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from gymlog.samplers import sampler_from
from gymlog.testing import captured
from gymlog.values import Limits

Comparable = dict[str, Any]  # Any: one JSON value
Program = Callable[[Tracer], object]
Run = Callable[..., tuple[list[Comparable], object]]

REMOTE_TRACE = "abcdef0123456789abcdef0123456789"
"""The trace of a program's caller in another process; all others are numbered."""
EARLY = 10**15
"""Times below are a program's own; all others are "now"."""


def _comparable(spans: list[Comparable]) -> list[Comparable]:
    """Give ids names, forget times that were not given, leave out what gymlog does on purpose.

    On purpose: `error.type` stands on a span that an exception left; an exception's stack has
    frames without source text; the deprecated `exception.escaped` is not written.
    """
    span_names = {span["span_id"]: span["name"] for span in spans}
    traces: dict[str, int] = {REMOTE_TRACE: -1}

    def when(time: int) -> object:
        return time if time < EARLY else "now"

    return [
        {
            **span,
            "trace_id": traces.setdefault(span["trace_id"], len(traces)),
            "span_id": None,
            "parent": span_names.get(span["parent"], span["parent"]),
            "start": when(span["start"]),
            "end": when(span["end"]),
            "attributes": without(span["attributes"], "error.type"),
            "events": [
                [name, when(time), without(attributes, "exception.escaped", "exception.stacktrace")]
                for name, time, attributes in span["events"]
            ],
            "links": [
                [traces.setdefault(trace_id, len(traces)), span_names.get(span_id, span_id), *rest]
                for trace_id, span_id, *rest in span["links"]
            ],
        }
        for span in spans
    ]


def without(attributes: Comparable, *keys: str) -> Comparable:
    return {key: value for key, value in attributes.items() if key not in keys}


def plain(attributes: Any) -> Comparable:  # Any: the SDK's mapping
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()
    }


def of_sdk(span: ReadableSpan) -> Comparable:
    """Bring a span of the SDK into the form that `of_line` gives."""
    own, parent = span.get_span_context(), span.parent
    assert own is not None
    return {
        "trace_id": f"{own.trace_id:032x}",
        "span_id": f"{own.span_id:016x}",
        "parent": f"{parent.span_id:016x}" if parent else None,
        "is_parent_remote": bool(parent and parent.is_remote),
        "flags": int(own.trace_flags),
        "trace_state": own.trace_state.to_header(),
        "name": span.name,
        "kind": span.kind.name,
        "start": span.start_time,
        "end": span.end_time,
        "status": [span.status.status_code.name, span.status.description or ""],
        "attributes": plain(span.attributes),
        "events": [[event.name, event.timestamp, plain(event.attributes)] for event in span.events],
        "links": [
            [
                f"{link.context.trace_id:032x}",
                f"{link.context.span_id:016x}",
                plain(link.attributes),
                link.context.trace_state.to_header(),
            ]
            for link in span.links
        ],
        "dropped": [span.dropped_attributes, span.dropped_events, span.dropped_links],
    }


def of_line(line: Comparable) -> Comparable:
    """Bring a span's line into the form that `of_sdk` gives."""
    assert line["flags"] & 0x100, "whether the parent is remote is always known"
    counters = ("dropped_attributes_count", "dropped_events_count", "dropped_links_count")
    return {
        "trace_id": line["trace_id"],
        "span_id": line["span_id"],
        "parent": line["parent_span_id"],
        "is_parent_remote": bool(line["flags"] & 0x200),
        "flags": line["flags"] & 0xFF,
        "trace_state": line.get("trace_state", ""),
        "name": line["name"],
        "kind": line["kind"],
        "start": line["start_time_unix_nano"],
        "end": line["end_time_unix_nano"],
        "status": [line["status"]["code"], line["status"].get("message", "")],
        "attributes": line["attributes"],
        "events": [
            [event["name"], event["time_unix_nano"], event["attributes"]]
            for event in line.get("events", [])
        ],
        "links": [
            [link["trace_id"], link["span_id"], link["attributes"], link.get("trace_state", "")]
            for link in line.get("links", [])
        ],
        "dropped": [line.get(counter, 0) for counter in counters],
    }


def _run_on_sdk(
    program: Program, sampler: sampling.Sampler | None = None, limits: SpanLimits | None = None
) -> tuple[list[Comparable], object]:
    exporter = InMemorySpanExporter()
    provider = SdkTracerProvider(
        sampler=sampler or sampling.DEFAULT_ON,
        resource=Resource({}),
        shutdown_on_exit=False,
        span_limits=limits,
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    seen = program(provider.get_tracer("program"))
    return _comparable([of_sdk(span) for span in exporter.get_finished_spans()]), seen


def _run_on_gymlog(
    program: Program, sampler: str | None = None, limits: Limits | None = None
) -> tuple[list[Comparable], object]:
    with captured(sampler=sampler_from(sampler, "") if sampler else None, limits=limits) as ours:
        seen = program(ours.provider.get_tracer("program"))
        return _comparable([of_line(line) for line in ours.spans]), seen


@pytest.fixture(scope="session")
def run_on_sdk() -> Run:
    """`run_on_sdk(program)` returns the program's spans and what it saw, on OpenTelemetry's SDK."""
    return _run_on_sdk


@pytest.fixture(scope="session")
def run_on_gymlog() -> Run:
    """`run_on_gymlog(program)` returns the same on gymlog."""
    return _run_on_gymlog

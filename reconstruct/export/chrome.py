"""A timeline as Chrome's trace events, the JSON that Perfetto, chrome://tracing and others open.

A service instance is a process, a lane a thread, a span a complete event (X), a call to another
process or a link a flow arrow, a log record or span event an instant (i), a metric a counter
(C). Times are µs with three decimals, so exact ns, from `baseTimeNanoseconds` on, which is text
because numbers in JSON are rounded beyond 2^53. Source: the "Trace Event Format" document of the
Chromium project. One event a line, written as they come.

Arrows are tied to the slices at their ends (`bind_id`). Where a slice has several, they are events
of their own (s, f), which viewers tie to the innermost slice at its start: a child's, if one of its
children begins in the same ns. Types of attributes beyond JSON's own have no place in the format.
"""

import json
from collections.abc import Iterator, Mapping
from typing import IO, Final

from reconstruct.export.arguments import (
    attributes_of,
    event_instants,
    facts_of,
    instant_facts,
    instant_name,
    label,
)
from reconstruct.export.drawn import Drawn, Slice
from reconstruct.export.timeline import Timeline
from reconstruct.intake.json_text import Json

__all__ = ["write"]

_BASE_UNIT: Final = 1_000_000_000
"""Times count from a whole second."""
_INSTANTS_THREAD: Final = 0
_text: Final = json.encoder.encode_basestring
"""Write a text as JSON."""


def write(timeline: Timeline, out: IO[bytes]) -> Drawn:
    """Write everything that is drawn; return how much that was."""
    drawn = Drawn()
    base = timeline.first_time // _BASE_UNIT * _BASE_UNIT
    head = f'{{"displayTimeUnit":"ns","baseTimeNanoseconds":"{base}","traceEvents":[\n'
    out.write(head.encode())
    before = ""
    for event in _events(timeline, base, drawn):
        out.write(f"{before}{event}".encode(errors="replace"))
        before = ",\n"
    out.write(b"\n]}\n")
    return drawn


def _events(timeline: Timeline, base: int, drawn: Drawn) -> Iterator[str]:
    pids = {process.instance: process.pid for process in timeline.processes.values()}
    lanes: dict[str, int] = {}
    with_instants: set[str] = set()
    for span, lane in timeline.slices():
        pid, instance = pids[span.instance], span.instance
        drawn.spans += 1
        lanes[instance] = max(lanes.get(instance, 0), lane + 1)
        place = f'"pid":{pid},"tid":{lane + 1},"ts":{_us(span.start - base)}'
        yield _complete(span, place)
        drawn.arrows += len(span.begun or ())
        for phase, arrows in (("s", span.begun), ("f", span.ended)):
            for arrow in arrows or ():
                if not arrow["is_lone"]:
                    end = ',"bp":"e"' if phase == "f" else ""
                    yield (
                        f'{{"ph":"{phase}","name":"{arrow["kind"]}","cat":"arrow",'
                        f'"id":{arrow["number"]},{place}{end}}}'
                    )
        for time, name, arguments in event_instants(span):
            drawn.instants += 1
            with_instants.add(instance)
            yield _instant(pid, time - base, name, "span event", arguments)
    for record in timeline.instants():
        drawn.instants += 1
        with_instants.add(record.instance)
        time = record.time - base
        name = instant_name(record)
        yield _instant(pids[record.instance], time, name, "log record", instant_facts(record))
    for reading in timeline.readings():
        drawn.readings += 1
        yield (
            f'{{"ph":"C","name":{_text(reading.name)},"pid":{pids[reading.instance]},"tid":0,'
            f'"ts":{_us(reading.time - base)},"args":{{{_text(reading.unit or "value")}:'
            f"{reading.value!r}}}}}"
        )
    drawn.lanes = sum(lanes.values())
    yield from _names(timeline, lanes, with_instants)


def _complete(span: Slice, place: str) -> str:
    facts = facts_of(span)
    attributes = span.attributes
    if attributes == "{}":
        arguments = _object(facts)
    elif attributes.startswith("{") and not any(f'"{key}"' in attributes for key in facts):
        # Encoded as it is, without being read: a span is written four times as fast.
        arguments = f"{_object(facts)[:-1]},{attributes[1:]}"
    else:
        own = {
            f"attributes.{key}" if key in facts else key: value
            for key, value in attributes_of(attributes).items()
        }
        arguments = _object(facts | own)
    color = ',"cname":"terrible"' if span.status_code == "ERROR" else ""
    return (
        f'{{"ph":"X","name":{_text(label(span))},"cat":"{span.kind}",{place},'
        f'"dur":{_us(span.end - span.start)}{color}{_bound(span)},"args":{arguments}}}'
    )


def _bound(span: Slice) -> str:
    """Tie arrows to the slice itself, as far as the one id that it may have goes."""
    if any(arrow["is_lone"] for arrow in span.begun or ()):
        return f',"bind_id":{span.number},"flow_out":true'
    for arrow in span.ended or ():
        if arrow["is_lone"]:
            return f',"bind_id":{arrow["source"]},"flow_in":true'
    return ""


def _instant(pid: int, time: int, name: str, category: str, arguments: Mapping[str, Json]) -> str:
    return (
        f'{{"ph":"i","s":"t","name":{_text(name)},"cat":"{category}","pid":{pid},'
        f'"tid":{_INSTANTS_THREAD},"ts":{_us(time)},"args":{_object(arguments)}}}'
    )


def _names(timeline: Timeline, lanes: Mapping[str, int], with_instants: set[str]) -> Iterator[str]:
    for place, process in enumerate(timeline.processes.values()):
        instance, pid = process.instance, process.pid
        yield _metadata(pid, 0, "process_name", {"name": process.name})
        yield _metadata(pid, 0, "process_sort_index", {"sort_index": place})
        yield _metadata(pid, 0, "process_labels", {"labels": ", ".join(process.labels)})
        for lane in range(1, lanes.get(instance, 0) + 1):
            yield _metadata(pid, lane, "thread_name", {"name": "spans"})
            yield _metadata(pid, lane, "thread_sort_index", {"sort_index": lane})
        if instance in with_instants:
            name = {"name": "log records and span events"}
            yield _metadata(pid, _INSTANTS_THREAD, "thread_name", name)


def _metadata(pid: int, tid: int, name: str, arguments: Mapping[str, Json]) -> str:
    return f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{name}","args":{_object(arguments)}}}'


def _us(time: int) -> str:
    """Write ns as µs, every digit; viewers cut what is smaller than a ns, so it is exact there."""
    sign = "-" if time < 0 else ""
    return f"{sign}{abs(time) // 1000}.{abs(time) % 1000:03d}"


def _object(value: Mapping[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

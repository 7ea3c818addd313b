"""A timeline as a Perfetto trace: protobuf track events, read by the Perfetto UI.

A service instance is a process, a lane a track of it, a span a slice, a call to another process or
a link a flow, a log record or span event an instant, a metric a counter. Times are ns since 1970,
exact; a clock snapshot says so, so that the UI shows the time of day. What recurs (names,
categories, keys) is interned. Source: `protos/perfetto/trace/track_event/*.proto` of Perfetto.

A span is two packets side by side, begin and end: who reads the file sorts by time, and what has
the same time stays in the order of the file. Packets are encoded some hundreds at a time, which is
all that is in memory.
"""

from collections.abc import Mapping
from typing import IO, Any, Final

from reconstruct.errors import UsageError
from reconstruct.export.arguments import (
    attributes_of,
    event_instants,
    facts_of,
    instant_facts,
    instant_name,
    label,
)
from reconstruct.export.drawn import Drawn, Process, Reading, Slice
from reconstruct.export.timeline import Timeline
from reconstruct.intake.json_text import Json, encode

__all__ = ["write"]

_PACKETS_AT_A_TIME: Final = 1_000
_SEQUENCE: Final = 1
_CLEARED, _NEEDED = 1, 2
"""TracePacket.SequenceFlags: interned data starts here; this packet needs it."""
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
"""TrackEvent.Type."""
_REALTIME, _BOOTTIME = 1, 6
"""BuiltinClock; packets without a clock are in the second."""
_SIZE_BYTES: Final = 3
"""CounterDescriptor.Unit."""
_TRACKS_PER_PROCESS: Final = 2**32
_INTERNED_AT_MOST: Final = 50_000
"""Of each kind; what else there is, is written out."""
_INT64: Final = range(-(2**63), 2**63)

Message = Any  # Any: classes of protobuf are made when they are imported


def write(timeline: Timeline, out: IO[bytes]) -> Drawn:
    """Write everything that is drawn; return how much that was.

    Raises `UsageError` when the perfetto package is not installed.
    """
    writer = _Writer(_messages(), timeline, out)
    writer.begin()
    for span, lane in timeline.slices():
        writer.slice(span, lane)
    for record in timeline.instants():
        writer.instant(
            record.instance,
            record.time,
            name=instant_name(record),
            category="log record",
            arguments=instant_facts(record),
        )
    for reading in timeline.readings():
        writer.reading(reading)
    writer.flush()
    return writer.drawn


def _messages() -> Any:  # Any: the module has no types
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise UsageError(
            "this needs the perfetto package: pip install 'gymlog[perfetto]', or take "
            "`export chrome`, which Perfetto opens too"
        ) from None
    return perfetto_trace_pb2


class _Interned:
    """Texts of one kind that are written once and then named by number."""

    def __init__(self, waiting: Message, field: str) -> None:
        self._waiting = waiting
        self._field = field
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int | None:
        """Return the number of a text, or None when there are too many."""
        number = self._numbers.get(text)
        if number is None and len(self._numbers) < _INTERNED_AT_MOST:
            number = self._numbers[text] = len(self._numbers) + 1
            getattr(self._waiting, self._field).add(iid=number, name=text)
        return number


class _Writer:
    """The packets of one file."""

    def __init__(self, messages: Any, timeline: Timeline, out: IO[bytes]) -> None:
        self.drawn = Drawn()
        self._messages = messages
        self._timeline = timeline
        self._out = out
        self._trace: Message = messages.Trace()
        self._fresh: Message = messages.InternedData()
        """What was interned since the last packet."""
        self._names = _Interned(self._fresh, "event_names")
        self._categories = _Interned(self._fresh, "event_categories")
        self._keys = _Interned(self._fresh, "debug_annotation_names")
        self._tracks: dict[tuple[str, str | int], int] = {}
        self._uuids: dict[str, int] = {}

    def begin(self) -> None:
        """Write the clocks and the processes."""
        first = self._timeline.first_time
        packet = self._packet()
        packet.sequence_flags = _CLEARED
        packet.first_packet_on_sequence = True
        packet.trace_packet_defaults.timestamp_clock_id = _REALTIME
        packet.clock_snapshot.clocks.add(clock_id=_REALTIME, timestamp=first)
        packet.clock_snapshot.clocks.add(clock_id=_BOOTTIME, timestamp=0)
        for place, process in enumerate(self._timeline.processes.values(), 1):
            self._uuids[process.instance] = place * _TRACKS_PER_PROCESS
            self._process(process)

    def _process(self, process: Process) -> None:
        track = self._packet().track_descriptor
        track.uuid = self._uuids[process.instance]
        track.process.pid = process.pid
        track.process.process_name = process.name
        track.process.process_labels.extend(process.labels)

    def slice(self, span: Slice, lane: int) -> None:
        """Write a span."""
        self.drawn.spans += 1
        track = self._tracks.get((span.instance, lane)) or self._lane(span.instance, lane)
        packet = self._packet(span.start)
        event = packet.track_event
        event.type = _BEGIN
        event.track_uuid = track
        self._name(event, label(span), span.kind)
        if span.status_code == "ERROR":
            self._category(event, "ERROR")
        for arrow in span.begun or ():
            self.drawn.arrows += 1
            event.flow_ids.append(arrow["number"])
        for arrow in span.ended or ():
            event.terminating_flow_ids.append(arrow["number"])
        self._annotate(event, facts_of(span))
        self._annotate(event, attributes_of(span.attributes))
        self._hand_over(packet)
        end = self._packet(span.end).track_event
        end.type = _END
        end.track_uuid = track
        for time, name, arguments in event_instants(span):
            self.instant(span.instance, time, name=name, category="span event", arguments=arguments)

    def instant(
        self, instance: str, time: int, *, name: str, category: str, arguments: Mapping[str, Json]
    ) -> None:
        """Write a log record or a span event."""
        self.drawn.instants += 1
        track = self._tracks.get((instance, "log")) or self._track(
            instance, "log", "log records and span events"
        )
        packet = self._packet(time)
        event = packet.track_event
        event.type = _INSTANT
        event.track_uuid = track
        self._name(event, name, category)
        self._annotate(event, arguments)
        self._hand_over(packet)

    def reading(self, reading: Reading) -> None:
        """Write a value of a counter."""
        self.drawn.readings += 1
        key = f"counter {reading.name}"
        track = self._tracks.get((reading.instance, key))
        if track is None:
            track = self._counter(reading, key)
        event = self._packet(reading.time).track_event
        event.type = _COUNTER
        event.track_uuid = track
        event.double_counter_value = reading.value

    def _counter(self, reading: Reading, key: str) -> int:
        """Describe a counter's track, in the process's group of them."""
        instance = reading.instance
        group = self._tracks.get((instance, "metrics")) or self._track(
            instance, "metrics", "metrics"
        )
        track = self._track(instance, key, reading.name, parent=group)
        descriptor = self._trace.packet[-1].track_descriptor
        if reading.unit == "By":
            descriptor.counter.unit = _SIZE_BYTES
        else:
            descriptor.counter.unit_name = reading.unit or ""
        return track

    def flush(self) -> None:
        """Write the packets that wait."""
        self._out.write(self._trace.SerializeToString())
        self._trace = self._messages.Trace()  # `Clear` would keep the memory

    def _packet(self, time: int | None = None) -> Message:
        """Add a packet, at a time in ns since 1970."""
        if len(self._trace.packet) >= _PACKETS_AT_A_TIME:
            self.flush()
        packets = self._trace.packet
        if time is None:
            return packets.add(trusted_packet_sequence_id=_SEQUENCE)
        return packets.add(
            trusted_packet_sequence_id=_SEQUENCE, sequence_flags=_NEEDED, timestamp=max(time, 0)
        )

    def _lane(self, instance: str, lane: int) -> int:
        self.drawn.lanes += 1
        # Lanes of one name are drawn as one, each below the other.
        return self._track(instance, lane, "spans")

    def _track(self, instance: str, key: str | int, name: str, *, parent: int | None = None) -> int:
        """Describe a track below a process, or below a `parent` among its tracks."""
        uuid = self._tracks[instance, key] = self._uuids[instance] + len(self._tracks) + 1
        track = self._packet().track_descriptor
        track.uuid = uuid
        track.parent_uuid = self._uuids[instance] if parent is None else parent
        track.name = name
        return uuid

    def _name(self, event: Message, name: str, category: str) -> None:
        number = self._names.number(name)
        if number is None:
            event.name = name
        else:
            event.name_iid = number
        self._category(event, category)

    def _category(self, event: Message, category: str) -> None:
        event.category_iids.append(self._categories.number(category))

    def _hand_over(self, packet: Message) -> None:
        """Put what was interned into the packet that first needs it."""
        if self._fresh.ByteSize():
            packet.interned_data.CopyFrom(self._fresh)
            self._fresh.Clear()

    def _annotate(self, event: Message, arguments: Mapping[str, Json]) -> None:
        annotations = event.debug_annotations
        for key, value in arguments.items():
            self._fill(annotations.add(), key, value)

    def _fill(self, annotation: Message, key: str, value: Json) -> None:
        number = self._keys.number(key)
        if number is None:
            annotation.name = key
        else:
            annotation.name_iid = number
        self._set(annotation, value)

    def _set(self, annotation: Message, value: Json) -> None:
        if isinstance(value, str):
            annotation.string_value = value
        elif isinstance(value, bool):
            annotation.bool_value = value
        elif isinstance(value, int) and value in _INT64:
            annotation.int_value = value
        elif isinstance(value, float):
            annotation.double_value = value
        elif isinstance(value, dict) and value:
            for name, member in value.items():
                self._fill(annotation.dict_entries.add(), name, member)
        elif isinstance(value, list) and value:
            for member in value:
                self._set(annotation.array_values.add(), member)
        else:
            annotation.string_value = encode(value)

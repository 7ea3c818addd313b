"""The sink: any record is one line, within its size, or it is counted."""

import json
import os
import signal
import threading

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymlog import notices, testing
from gymlog.channel import Channel
from gymlog.record import PIPE_BUF, SPAN
from gymlog.sink import Sink


@pytest.fixture(autouse=True)
def _fresh():
    notices.reset()
    yield
    notices.reset()


def written(record, **options):
    """Return the only line that a record makes."""
    file = testing.MemoryFile()
    Sink(file, **options).write(record)
    assert len(file.writes) == 1
    return file.writes[0]


def span_record(**fields):
    """Return a span as the tracer makes it, with some fields replaced or added."""
    record = {
        "record_type": "span",
        "seq": 3,
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "parent_span_id": None,
        "name": "gym.verify",
        "kind": "INTERNAL",
        "start_time_unix_nano": 1_750_000_000_000_000_000,
        "end_time_unix_nano": 1_750_000_000_000_000_005,
        "flags": 259,
        "status": {"code": "UNSET"},
        "attributes": {},
        "resource": {
            "attributes": {"service.name": "nemo-gym/agent", "service.instance.id": "c" * 16}
        },
    }
    order = [field.name for field in SPAN]
    return dict(sorted({**record, **fields}.items(), key=lambda item: order.index(item[0])))


def test_a_line_is_compact_json_in_the_order_of_the_contract():
    """No space, one line's end, fields in order: readers may look at the start of a line only."""
    line = written(span_record(attributes={"a": 1}))
    assert line.startswith(b'{"record_type":"span","seq":0,"trace_id":"')
    assert line.endswith(b"}\n")
    assert b": " not in line
    assert b", " not in line
    order = [field.name for field in SPAN]
    positions = [order.index(key) for key in json.loads(line)]
    assert positions == sorted(positions)


def test_seq_counts_lines_in_the_order_in_which_they_stand():
    """Threads that write at once: a file that is cut anywhere has no gap before the cut."""
    file = testing.MemoryFile()
    sink = Sink(file)
    threads = [
        threading.Thread(target=lambda: [sink.write(span_record()) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [json.loads(line)["seq"] for line in file.writes] == list(range(2000))


def test_what_the_encoder_refuses_is_cleaned():
    """Lone surrogates anywhere, ints beyond 64 bits, keys that are no text, sets, cycles."""
    cycle: list = []
    cycle.append(cycle)
    attributes = {"a\ud800": "\udfff", "big": 2**70, "nested": {1: {2}}, "cycle": cycle, "ok": 1}
    record = json.loads(written(span_record(name="n\ud800", attributes=attributes)))
    assert record["name"] == "n\ufffd"
    assert record["attributes"] == {
        "a\ufffd": "\ufffd",
        "big": str(2**70),
        "nested": {"1": [2]},
        "cycle": ["<cycle>"],
        "ok": 1,
    }
    assert record["resource"]["attributes"]["service.instance.id"] == "c" * 16


def test_an_encoded_resource_survives_cleaning():
    """The fragment that is encoded once per process is an object on every line."""
    resource = orjson.Fragment(b'{"attributes":{"service.name":"s"}}')
    record = json.loads(written(span_record(attributes={"a": "\ud800"}, resource=resource)))
    assert record["resource"] == {"attributes": {"service.name": "s"}}


def test_a_line_that_is_too_long_has_its_largest_values_cut_and_counted():
    """Small attributes stay whole; `dropped_attributes_count` says how many were cut."""
    attributes = {"big": "x" * 50_000, "list": list(range(20_000)), "small": "kept", "n": 1}
    line = written(span_record(attributes=attributes))
    assert len(line) <= 65_536
    record = json.loads(line)
    assert record["attributes"]["small"] == "kept"
    assert record["attributes"]["big"].endswith("…")
    assert record["dropped_attributes_count"] == 2
    keys = list(record)
    assert keys.index("dropped_attributes_count") < keys.index("resource")


_IDENTITY = ("trace_id", "span_id", "parent_span_id", "kind", "seq", "record_type", "flags")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"attributes": {f"key.number.{n}": "v" * 60 for n in range(128)}}, "values"),
        ({"attributes": {f"{n}" + "k" * 60: n for n in range(128)}}, "keys"),
        ({"status": {"code": "ERROR", "message": "é" * 8192}}, "status message"),
        ({"name": "\x01" * 8192}, "name that JSON escapes"),
        ({"events": [{"time_unix_nano": 1, "name": "e" * 90, "attributes": {}}] * 128}, "events"),
        ({"links": [{"trace_id": "d" * 32, "span_id": "e" * 16, "attributes": {}}] * 128}, "links"),
        ({"scope": {"name": "s" * 9000}}, "scope"),
        ({"trace_state": "k=" + "v" * 9000}, "trace state"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_what_identifies_a_span_is_never_cut(fields, why):
    """Whatever is too large: ids, kind, status code and the instance stay, the line fits."""
    del why
    record = span_record(**fields)
    line = written(record, line_max_bytes=PIPE_BUF)
    assert len(line) <= PIPE_BUF
    short = json.loads(line)
    assert {key: short[key] for key in _IDENTITY} == {key: record[key] for key in _IDENTITY}
    assert short["status"]["code"] == record["status"]["code"]
    assert short["resource"]["attributes"]["service.instance.id"] == "c" * 16
    for link in short.get("links", []):
        assert link["trace_id"] == "d" * 32


def test_a_process_record_that_is_too_long_keeps_its_instance():
    """The resource is what a process record is for; what identifies it stays."""
    attributes = {"service.name": "s", "service.instance.id": "c" * 16} | {
        f"k{n}": "v" * 1000 for n in range(20)
    }
    record = {
        "record_type": "process",
        "seq": 0,
        "state": "started",
        "schema": 1,
        "time_unix_nano": 1,
        "spans_written": 0,
        "records_dropped": 0,
        "open_spans": 0,
        "resource": {"attributes": attributes},
    }
    line = written(record, line_max_bytes=PIPE_BUF)
    assert len(line) <= PIPE_BUF
    short = json.loads(line)
    assert short["state"] == "started"
    assert short["resource"]["attributes"]["service.instance.id"] == "c" * 16


_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=3000)
_values = st.recursive(
    _text | st.integers() | st.floats() | st.booleans() | st.none() | st.binary(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(_text, inner, max_size=10),
    max_leaves=30,
)


@settings(max_examples=50)
@given(
    st.dictionaries(_text, _values, max_size=20),
    _text,
    st.lists(_text, max_size=5),
    st.sampled_from([PIPE_BUF, 10_000, 65_536]),
)
def test_any_record_is_one_line_within_its_size(attributes, name, events, line_max_bytes):
    """One write, one line's end at its end, strict JSON, no more than the limit."""
    record = span_record(
        name=name,
        status={"code": "ERROR", "message": name},
        attributes=attributes,
        events=[{"time_unix_nano": 1, "name": text, "attributes": attributes} for text in events],
    )
    line = written(record, line_max_bytes=line_max_bytes)
    assert line.index(b"\n") == len(line) - 1 <= line_max_bytes - 1
    assert json.loads(line)["span_id"] == "b" * 16


class FailingFile(testing.MemoryFile):
    """A file whose writes raise."""

    def write(self, line, /):
        raise RuntimeError("broken file")


def test_a_file_that_raises_is_counted_and_told_once(capfd):
    """The host does not notice."""
    sink = Sink(FailingFile())
    for _ in range(3):
        sink.write(span_record())
    assert sink.records_dropped == 3
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert "broken file" in error


class InterruptedFile(testing.MemoryFile):
    """A file during whose first write something else happens in the same thread."""

    def __init__(self, meanwhile):
        super().__init__()
        self.meanwhile = meanwhile
        self.inside = False

    def write(self, line, /):
        assert not self.inside, "a line inside a line"
        self.inside = True
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        self.inside = False
        super().write(line)


def test_a_span_ended_by_a_signal_handler_during_a_write_is_written_after_it():
    """No deadlock on the logger's lock, and no line lost."""
    sink = Sink(InterruptedFile(lambda: signal.raise_signal(signal.SIGUSR1)))
    before = signal.signal(signal.SIGUSR1, lambda *_: sink.write(span_record(name="handler")))
    try:
        sink.write(span_record(name="interrupted"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [json.loads(line)["name"] for line in sink.file.writes] == ["interrupted", "handler"]


def test_a_signal_handler_does_not_wait_for_its_own_thread_when_others_write_too():
    """As above, while a second thread waits for its turn.

    main thread   |--- write ---- handler: write ------|
    other thread       |--- waits for its turn ---------...
    """

    def meanwhile():
        other = threading.Thread(target=lambda: sink.write(span_record(name="other")), daemon=True)
        other.start()
        other.join(0.2)  # it does not end: by then it waits for its turn
        sink.write(span_record(name="handler"))

    sink = Sink(InterruptedFile(meanwhile))
    done = threading.Event()

    def write():
        sink.write(span_record(name="interrupted"))
        done.set()

    threading.Thread(target=write, daemon=True).start()
    assert done.wait(1), "the handler waits for a lock that its own thread holds"


def test_a_lost_line_is_counted_for_what_it_was():
    """`spans_written` of the process record leaves lost spans out, and nothing else."""

    class Broken(testing.MemoryFile):
        def write(self, line, /):
            raise RuntimeError

    sink = Sink(Broken())
    sink.write(span_record(name="lost"))
    sink.write({"record_type": "process", "seq": 1})
    assert (sink.records_dropped, sink.spans_dropped) == (2, 1)


def test_an_interrupt_during_a_write_leaves_the_sink_usable():
    """KeyboardInterrupt goes on to the program; the next span is written."""

    def interrupt():
        raise KeyboardInterrupt

    file = InterruptedFile(interrupt)
    sink = Sink(file)
    with pytest.raises(KeyboardInterrupt):
        sink.write(span_record(name="interrupted"))
    file.inside = False
    sink.write(span_record(name="next"))
    assert json.loads(file.writes[-1])["name"] == "next"


def test_many_records_reach_a_file_in_few_writes(tmp_path, monkeypatch):
    """Each on a line of its own, numbered in order with those before and after."""
    path = tmp_path / "many.log"
    with path.open("wb") as file:
        sink = Sink(Channel(file.fileno()))
        writes = []
        write = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: writes.append(data) or write(fd, data))
        sink.write({"record_type": "process", "seq": 0})
        sink.write_all([{"record_type": "span_start", "seq": 0, "n": n} for n in range(1_000)])
        sink.write({"record_type": "process", "seq": 0})
    records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [record["seq"] for record in records] == list(range(1_002))
    assert [record["n"] for record in records[1:-1]] == list(range(1_000))
    assert len(writes) <= 2 + 1_000 / 50
    assert sink.records_dropped == 0


def test_many_records_that_a_full_disk_refuses_are_all_counted():
    """None is torn, none is forgotten."""
    with open("/dev/full", "wb") as file:
        sink = Sink(Channel(file.fileno()))
        sink.file.takes_many_lines = True  # as a file on that disk
        sink.write_all([{"record_type": "span_start", "seq": 0, "n": n} for n in range(100)])
    assert (sink.records_dropped, sink.spans_dropped) == (100, 0)


def test_many_records_go_into_a_pipe_one_by_one():
    """What several processes share takes no more than a line at a time whole."""
    reader, writer = os.pipe()
    try:
        sink = Sink(Channel(writer))
        sink.write_all([{"record_type": "span_start", "seq": 0, "n": n} for n in range(20)])
        lines = os.read(reader, 65_536).splitlines()
    finally:
        os.close(reader)
        os.close(writer)
    assert [orjson.loads(line)["n"] for line in lines] == list(range(20))
    assert not sink.file.takes_many_lines


def test_an_interrupt_in_the_middle_of_a_write_leaves_the_sink_free():
    """Ctrl-C raises wherever the program is, also between a lock and what it guards."""

    class Interrupt(BaseException):
        pass

    def interrupt(number, frame):
        raise Interrupt

    sink = Sink(testing.MemoryFile())
    records = [{"record_type": "log", "seq": 0, "body": "x"}] * 3
    interrupted = 0
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(2_000):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.00005)
                while True:
                    sink.write(dict(records[0]))
                    sink.write_all([dict(record) for record in records])
            except Interrupt:
                interrupted += 1
            if sink.is_writing():
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (sink.is_writing(), interrupted) == (False, 2_000)

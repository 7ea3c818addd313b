"""What becomes a line and what goes to OTLP, by the words in `exporter`."""

import orjson

from gymlog import settings
from gymlog.otlp.tee import ExportingSink, exporting
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.testing import MemoryFile
from gymlog.tracer import TracerProvider


class Queue:
    """Takes the place of a queue."""

    def __init__(self, dropped=0, failed=0):
        self.records = []
        self.dropped, self.failed = dropped, failed
        self.put = self.records.append


def made(*, writes_lines, **queues):
    """Return a tracer, its service instance and the function that reads the lines."""
    file = MemoryFile()

    def make_sink():
        return ExportingSink(Sink(file), queues, writes_lines=writes_lines)

    service = ServiceInstance({"service.name": "test"}, make_sink, span_start_after_seconds=0)
    return TracerProvider(service), lambda: [orjson.loads(line) for line in file.writes]


def types(records):
    return [record["record_type"] for record in records]


def test_both_get_each_span(span_record):
    """And a `span_start`, which OTLP has no form for, is a line only."""
    spans = Queue()
    provider, lines = made(writes_lines=True, span=spans)
    provider.tracer.start_span("work").end()
    assert types(lines()) == ["span_start", "process", "span"]
    assert types(spans.records) == ["span"]
    assert [record["seq"] for record in lines()] == [0, 1, 2]


def test_otlp_alone_leaves_process_records_as_lines():
    """Which say that no span was written, and number themselves without a gap."""
    spans = Queue()
    provider, lines = made(writes_lines=False, span=spans)
    provider.tracer.start_span("work").end()
    provider.service.stop()
    assert types(spans.records) == ["span"]
    assert types(lines()) == ["process", "process"]
    assert [record["seq"] for record in lines()] == [0, 1]
    assert [record["spans_written"] for record in lines()] == [0, 0]


def test_a_record_without_a_queue_becomes_a_line():
    """Logs that cannot be sent are not lost."""
    provider, lines = made(writes_lines=False, span=Queue())
    provider.service.sink.write({"record_type": "log", "seq": 0, "body": "x"})
    assert types(lines()) == ["log"]


def test_process_records_count_what_otlp_lost():
    """Before the resource, and only when there is something to count."""
    spans, logs = Queue(dropped=2), Queue(dropped=1, failed=4)
    provider, lines = made(writes_lines=True, span=spans, log=logs)
    provider.service.sink.count_failed(5)
    provider.service.stop()
    (record,) = lines()
    assert (record["export_dropped"], record["export_failed"]) == (3, 9)
    assert list(record)[-3:] == ["export_dropped", "export_failed", "resource"]
    provider, lines = made(writes_lines=True, span=Queue())
    provider.service.stop()
    assert "export_dropped" not in lines()[0]


def test_a_signal_whose_variables_make_no_sense_becomes_lines(monkeypatch, capfd):
    """One notice says so, and the other signal goes its way."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "zstd")
    file = MemoryFile()
    signals = frozenset({"traces", "logs"})
    sink = exporting(lambda: Sink(file), dict, signals=signals, writes_lines=False)()
    sink.write({"record_type": "log", "seq": 0, "body": "x"})
    assert set(sink._queues) == {"span"}
    sink.finish(5)
    assert len(file.writes) == 1
    (said,) = capfd.readouterr().err.splitlines()
    assert "zstd" in said
    assert "log records" in said


def test_what_an_exporter_complains_about_is_repeated(monkeypatch, capfd, caplog):
    """It goes on without; its own warning does not reach the host's handlers."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")
    sink = exporting(
        lambda: Sink(MemoryFile()), dict, signals=frozenset({"traces"}), writes_lines=False
    )()
    sink.finish(5)
    (said,) = capfd.readouterr().err.splitlines()
    assert "zstd" in said
    assert caplog.records == []


def test_the_variables_of_the_queue_count(monkeypatch):
    """OTEL_BSP_ for spans, OTEL_BLRP_ for log records, with the specified defaults."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "7")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1500")
    monkeypatch.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "3")
    signals = frozenset({"traces", "logs"})
    sink = exporting(lambda: Sink(MemoryFile()), dict, signals=signals, writes_lines=True)()
    spans, logs = sink._queues["span"], sink._queues["log"]
    sink.finish(0)
    assert (spans._batch_records, spans._delay_seconds) == (7, 1.5)
    assert (logs._batch_records, logs._delay_seconds) == (3, 1.0)
    assert settings.OTLP_BATCHES["logs"].max_queue_size.default == 2048

"""Collections: at an interval, at the end, in a fork; to lines and to exporters alike."""

import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
)

from gymlog.metrics import instruments
from gymlog.metrics.collector import Collector
from gymlog.metrics.instruments import ROLLOUT_DURATION, VERIFY_DURATION, VERIFY_SUCCESS_RATE, timed


class Exporter(MetricExporter):
    """Keeps what it gets, as {name: [points]} of each export."""

    def __init__(self, temporality=AggregationTemporality.CUMULATIVE, error=None):
        from opentelemetry.sdk.metrics import Counter, Histogram

        super().__init__({Counter: temporality, Histogram: temporality})
        self.exports, self.error, self.is_shut_down = [], error, False

    def export(self, metrics_data, timeout_millis=10_000, **kwargs):
        if self.error is not None:
            raise self.error
        self.exports.append(
            {
                metric.name: list(metric.data.data_points)
                for resource in metrics_data.resource_metrics
                for scope in resource.scope_metrics
                for metric in scope.metrics
            }
        )
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis=10_000):
        return True

    def shutdown(self, timeout_millis=30_000, **kwargs):
        self.is_shut_down = True


def test_a_flush_writes_what_is_new(collecting, points):
    """gymlog's own metrics and a program's, each measurement once."""
    with collecting() as collector:
        counter = collector.provider.get_meter("gym").create_counter("my.count", "1", "Mine.")
        counter.add(2, {"a": 1})
        with timed(ROLLOUT_DURATION):
            pass
        collector.flush()
        assert [line["value"] for line in points("my.count")] == [2]
        assert [line["count"] for line in points("gym.rollout.duration_ms")] == [1]
        collector.flush()
        assert len(points()) == 2
        counter.add(3, {"a": 1})
    assert [line["value"] for line in points("my.count")] == [2, 3]
    assert len(points()) == 3


def test_a_block_is_timed_to_its_end(collecting, points):
    """What leaves it is named; blocks that are completed are a share."""
    with collecting():
        for error in (None, KeyError("x"), None, None):
            try:
                with timed(VERIFY_DURATION, share=VERIFY_SUCCESS_RATE):
                    if error is not None:
                        raise error
            except KeyError:
                pass
    counts = {line["attributes"].get("error.type"): line["count"] for line in points()
              if line["type"] == "histogram"}  # fmt: skip
    assert counts == {None: 3, "KeyError": 1}
    assert [line["value"] for line in points("gym.verify.success_rate")] == [0.75]


def test_while_metrics_are_off_nothing_is_measured(telemetry):
    """A timed block is the same object that does nothing."""
    assert not instruments.are_on
    with timed(ROLLOUT_DURATION):
        pass
    assert timed(ROLLOUT_DURATION) is timed(VERIFY_DURATION)
    assert ROLLOUT_DURATION.cells == {}


def test_buckets_reach_an_hour():
    """Those of everything that can last long."""
    from gymlog.metrics.series import Histogram

    for name in instruments.__all__:
        instrument = getattr(instruments, name)
        if isinstance(instrument, Histogram):
            hour = {"s": 3_600, "ms": 3_600_000}[instrument.unit]
            assert instrument._bounds[-1] == hour, name
            assert list(instrument._bounds) == sorted(set(instrument._bounds))


def test_no_metric_has_a_rollout_or_a_path_as_attribute():
    """Nor a reward: each series would have one value."""
    for name in instruments.__all__:
        instrument = getattr(instruments, name)
        keys = getattr(instrument, "keys", ())
        assert not {"nemo.gym.rollout.id", "url.path", "url.full"} & set(keys)
        assert "reward" not in str(getattr(instrument, "name", "")).lower()


def test_the_end_collects_once_more_and_is_the_end(collecting, points):
    """What is measured afterwards goes nowhere, and raises nothing."""
    with collecting() as collector:
        counter = collector.provider.get_meter("gym").create_counter("my.count")
        counter.add(1)
    counter.add(1)
    collector.provider.get_meter("gym").create_histogram("late").record(1)
    collector.flush()
    collector.stop()
    assert [line["value"] for line in points("my.count")] == [1]
    assert not [thread for thread in threading.enumerate() if thread.name == "gymlog-metrics"]


def test_each_interval_is_a_collection(telemetry, points):
    """By a thread of its own, without anybody asking."""
    collected = threading.Semaphore(0)

    def observe(options):
        collected.release()
        return []

    collector = Collector(telemetry.service, interval_seconds=0.01)
    collector.provider.get_meter("gym").create_observable_gauge("g", [observe])
    collector.start()
    try:
        for number in range(3):
            ROLLOUT_DURATION.record(1.0, (None,))
            for _ in range(2):  # one may be under way already
                assert collected.acquire(timeout=20)
            counts = [line["count"] for line in points("gym.rollout.duration_ms")]
            assert sum(counts) == number + 1
    finally:
        collector.stop()


def test_an_exporter_gets_every_metric_in_its_own_temporality(collecting, points):
    """gymlog's own too; the lines are differences all the same."""
    exporter = Exporter()
    with collecting(make_exporters=lambda: [exporter]) as collector:
        counter = collector.provider.get_meter("gym").create_counter("my.count")
        for _ in range(2):
            counter.add(1)
            ROLLOUT_DURATION.record(7.0, (None,))
            collector.flush()
    last = exporter.exports[-1]
    assert [point.value for point in last["my.count"]] == [2]
    ((rollouts),) = last["gym.rollout.duration_ms"]
    assert (rollouts.count, rollouts.sum, rollouts.max) == (2, 14.0, 7.0)
    assert exporter.is_shut_down
    assert [line["value"] for line in points("my.count")] == [1, 1]
    assert [line["count"] for line in points("gym.rollout.duration_ms")] == [1, 1]


def test_an_exporter_gets_what_was_flushed_at_once_too(collecting, points):
    """A collection of lines takes nothing away from it."""
    exporter = Exporter()
    with collecting(make_exporters=lambda: [exporter]) as collector:
        ROLLOUT_DURATION.record(7.0, (None,))
        collector.flush()
    assert [point.count for point in exporter.exports[-1]["gym.rollout.duration_ms"]] == [1]


def test_lines_can_be_left_out(collecting, points):
    """Exporters then get what there is."""
    exporter = Exporter(AggregationTemporality.DELTA)
    with collecting(make_exporters=lambda: [exporter], writes_lines=False):
        ROLLOUT_DURATION.record(7.0, (None,))
    assert points() == []
    assert [point.count for point in exporter.exports[-1]["gym.rollout.duration_ms"]] == [1]


def test_an_exporter_that_fails_is_told_of_once(collecting, points, capfd):
    """The lines go on."""
    exporter = Exporter(error=OSError("no route"))
    with collecting(make_exporters=lambda: [exporter]):
        ROLLOUT_DURATION.record(7.0, (None,))
    assert len(points("gym.rollout.duration_ms")) == 1
    assert capfd.readouterr().err.count("metrics are missing: OSError: no route") == 1


def test_an_observer_that_fails_takes_nothing_else_along(collecting, points, caplog):
    """The SDK logs it."""

    def broken(options):
        raise RuntimeError("observer")

    with collecting() as collector:
        meter = collector.provider.get_meter("gym")
        meter.create_observable_gauge("broken", [broken])
        meter.create_counter("my.count").add(1)
        ROLLOUT_DURATION.record(7.0, (None,))
    assert {line["name"] for line in points()} == {"my.count", "gym.rollout.duration_ms"}


def test_observed_gauges_are_written_when_they_change(collecting, points):
    """Nobody reads the same value six times a minute."""
    values = iter([1, 1, 2, 2])

    def observe(options):
        yield metrics.Observation(next(values))

    with collecting() as collector:
        collector.provider.get_meter("gym").create_observable_gauge("g", [observe])
        for _ in range(3):
            collector.flush()
    assert [line["value"] for line in points("g")] == [1, 2]


def test_exemplars_can_be_left_out(collecting, points, telemetry):
    """OTEL_METRICS_EXEMPLAR_FILTER, for the SDK's metrics and for gymlog's."""
    for name, has_any in (("trace_based", True), ("always_off", False)):
        before = len(points())
        with collecting(exemplar_filter=name) as collector:
            histogram = collector.provider.get_meter("gym").create_histogram("h")
            with telemetry.tracer.start_as_current_span("work"):
                ROLLOUT_DURATION.record(7.0, (None,))
                histogram.record(1)
        new = points()[before:]
        assert len(new) == 2
        assert {"exemplars" in line for line in new} == {has_any}


def test_exemplars_of_early_measurements_lead_to_their_span(collecting, points, telemetry):
    """Also of a program's own, made before the SDK was there."""
    with collecting() as collector:
        histogram = collector.provider.get_meter("gym").create_histogram("h")
        with telemetry.tracer.start_as_current_span("work") as span:
            histogram.record(1)
    ((exemplar,),) = [line["exemplars"] for line in points("h")]
    assert (exemplar["trace_id"], exemplar["span_id"]) == (span.trace_id, span.span_id)


# Processes.

ON = {"NEMO_GYM_OTEL_ENABLED": "1", "NEMO_GYM_OTEL_RUN_ID": "r"}


def run(program, **variables):
    """Run a program with telemetry on; return its metric lines, all records, and stderr."""
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    done = subprocess.run(
        # From 3.12 on Python warns of each fork of a process with threads; these are forked safely.
        [sys.executable, "-Wignore:This process", "-c", textwrap.dedent(program)],
        env=environment | ON | variables,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    lines = [record for record in records if record["record_type"] == "metric"]
    return lines, records, done.stderr.decode()


def instance_of(record):
    return record["resource"]["attributes"]["service.instance.id"]


def test_a_process_writes_its_metrics_when_it_ends():
    """Before its `stopped` record, which is the last line."""
    lines, records, words = run(
        """
        import gymlog
        from opentelemetry import metrics

        handle = gymlog.init_telemetry("agent")
        metrics.get_meter("library").create_counter("theirs").add(1)
        handle.meter.create_counter("ours").add(2)
        """
    )
    values = {line["name"]: line.get("value") for line in lines}
    assert (values["theirs"], values["ours"]) == (1, 2)
    assert records[-1]["state"] == "stopped"
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert words == ""


def test_metrics_do_not_need_traces():
    """They have their own switch."""
    lines, records, _ = run(
        """
        import gymlog
        from gymlog.metrics.instruments import ROLLOUT_DURATION, timed

        handle = gymlog.init_telemetry("agent")
        with gymlog.managed_span("rollout", "gym.rollout"), timed(ROLLOUT_DURATION):
            pass
        handle.meter.create_counter("ours").add(2)
        """,
        NEMO_GYM_OTEL_TRACES_ENABLED="0",
    )
    assert {"gym.rollout.duration_ms", "ours"} <= {line["name"] for line in lines}
    assert not [record for record in records if record["record_type"] == "span"]


def test_metrics_that_are_off_load_nothing_and_run_nothing():
    """Neither the SDK nor a thread; a meter is there and does nothing."""
    lines, _, words = run(
        """
        import sys, threading
        import gymlog

        handle = gymlog.init_telemetry("agent")
        handle.meter.create_counter("ours").add(2)
        assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk")]
        assert not [one for one in threading.enumerate() if one.name == "gymlog-metrics"]
        """,
        NEMO_GYM_OTEL_METRICS_ENABLED="0",
    )
    assert (lines, words) == ([], "")


def test_a_process_that_ends_at_once_does_not_load_the_sdk():
    """Not at its start, and not at its end for what observes it."""
    _, _, words = run(
        """
        import sys
        import gymlog

        gymlog.init_telemetry("agent")
        gymlog.shutdown_telemetry()
        assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk.metrics")]
        """
    )
    assert words == ""


def test_a_forked_child_counts_for_itself():
    """It reports nothing of its parent's, under an instance of its own; both report their own."""
    lines, _, words = run(
        """
        import os
        import gymlog
        from gymlog.metrics.instruments import ROLLOUT_DURATION

        handle = gymlog.init_telemetry("agent")
        early = handle.meter.create_counter("early")
        early.add(1)
        updown = handle.meter.create_up_down_counter("updown")
        updown.add(10)
        ROLLOUT_DURATION.record(1.0, (None,))
        handle.collector.flush()      # the SDK is there, and holds values
        early.add(1)                  # neither collected …
        updown.add(1)
        ROLLOUT_DURATION.record(2.0, (None,))
        if os.fork() == 0:            # … nor the child's
            early.add(100)
            updown.add(100)
            ROLLOUT_DURATION.record(100.0, (None,))
            gymlog.shutdown_telemetry()
            os._exit(0)
        os.wait()
        """
    )
    found = {}
    for line in lines:
        value = line.get("value", line.get("sum"))
        found.setdefault(instance_of(line), {}).setdefault(line["name"], []).append(value)
    parent, child = [found[instance_of(lines[0])]], dict(found)
    del child[instance_of(lines[0])]
    (child,) = child.values()
    assert [parent[0][name] for name in ("early", "updown", "gym.rollout.duration_ms")] == [
        [1, 1], [10, 11], [1.0, 2.0],
    ]  # fmt: skip
    assert [child[name] for name in ("early", "updown", "gym.rollout.duration_ms")] == [
        [100], [100], [100.0],
    ]  # fmt: skip
    assert words == ""


def test_a_fork_waits_for_what_is_being_loaded_or_collected():
    """The child could otherwise never import what its parent was importing."""
    lines, _, words = run(
        """
        import os, threading
        import gymlog

        handle = gymlog.init_telemetry("agent")
        counter = handle.meter.create_counter("c")
        counter.add(1)
        for n in range(10):
            begin = threading.Barrier(2)
            collecting = threading.Thread(
                target=lambda: (begin.wait(), handle.collector.flush(), counter.add(1))
            )
            collecting.start()
            begin.wait()
            if os.fork() == 0:
                counter.add(1000)
                handle.collector.flush()
                os._exit(0)
            assert os.wait()[1] == 0
            collecting.join()
        """
    )
    children = [line["value"] for line in lines if line["name"] == "c" and line["value"] >= 1000]
    assert children == [1000] * 10
    assert sum(line["value"] for line in lines if line["name"] == "c") == 11 + 10_000
    assert words == ""


def test_another_global_meter_provider_stays():
    """gymlog's own metrics and those of its meter are written all the same."""
    lines, _, words = run(
        """
        from opentelemetry import metrics
        from opentelemetry.sdk.metrics import MeterProvider

        theirs = MeterProvider(shutdown_on_exit=False)
        metrics.set_meter_provider(theirs)
        import gymlog

        handle = gymlog.init_telemetry("agent")
        assert metrics.get_meter_provider() is theirs
        handle.meter.create_counter("ours").add(2)
        """
    )
    assert [line["value"] for line in lines if line["name"] == "ours"] == [2]
    assert words.count("\n") == 1
    assert "global meter provider is already a opentelemetry.sdk" in words


def test_an_sdk_that_does_not_load_is_told_of_and_costs_nothing_else():
    """gymlog's own metrics do without."""
    lines, records, words = run(
        """
        import sys
        import gymlog
        from gymlog.metrics.instruments import ROLLOUT_DURATION

        sys.modules["opentelemetry.sdk.metrics"] = None
        handle = gymlog.init_telemetry("agent")
        handle.meter.create_counter("ours").add(2)
        ROLLOUT_DURATION.record(1.0, (None,))
        handle.collector.flush()
        ROLLOUT_DURATION.record(1.0, (None,))
        """
    )
    assert [line["name"] for line in lines] == ["gym.rollout.duration_ms"] * 2
    assert records[-1]["state"] == "stopped"
    assert words.count("gymlog: OpenTelemetry's SDK does not start") == 1


def test_a_slow_observer_does_not_hold_up_the_end():
    """Longer than shutdown's timeout says."""
    _, records, _ = run(
        """
        import threading, time
        import gymlog

        handle = gymlog.init_telemetry("agent")
        handle.meter.create_observable_gauge("slow", [lambda options: threading.Event().wait()])
        begin = time.monotonic()
        gymlog.shutdown_telemetry(timeout_ms=300)
        assert time.monotonic() - begin < 5
        """
    )
    assert records[-1]["state"] == "stopped"


@pytest.mark.parametrize("name", ["OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRICS_EXEMPLAR_FILTER"])
def test_a_bad_setting_is_one_line(name):
    """And the default stands."""
    _, _, words = run("import gymlog; gymlog.init_telemetry('agent')", **{name: "often"})
    assert words.startswith(f"gymlog: {name}='often' is not accepted")
    assert words.count("\n") == 1

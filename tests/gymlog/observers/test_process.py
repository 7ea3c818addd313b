"""What the process says of itself is what the operating system says."""

import os
import threading

import psutil

from gymlog.observers.process import observe_process


def test_cpu_time_is_that_of_the_process(metrics):
    """User and system apart, in seconds, and it only grows."""
    observe_process(metrics.meter)
    before = os.times()
    points = {
        point.attributes["cpu.mode"]: point.value for point in metrics.collect()["process.cpu.time"]
    }
    after = os.times()
    assert before.user <= points["user"] <= after.user
    assert before.system <= points["system"] <= after.system
    assert set(points) == {"user", "system"}


def test_memory_is_what_is_resident(metrics):
    """Within a third of what it was a moment ago; 64 MB more are 64 MB more."""
    observe_process(metrics.meter)
    before = metrics.one("process.memory.usage").value
    assert abs(before - psutil.Process().memory_info().rss) < before / 3
    more = b"\x01" * 64_000_000
    assert 60_000_000 < metrics.one("process.memory.usage").value - before < 80_000_000
    assert more


def test_threads_are_counted_by_the_operating_system(metrics):
    """Twenty more; a few that other tests have ended may only now be gone."""
    observe_process(metrics.meter)
    before = metrics.one("process.thread.count").value
    ending = threading.Event()
    threads = [threading.Thread(target=ending.wait) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert 10 < metrics.one("process.thread.count").value - before <= 20
    ending.set()
    for thread in threads:
        thread.join()


def test_open_files_are_counted(metrics):
    """Each descriptor is one."""
    observe_process(metrics.meter)
    before = metrics.one("process.open_file_descriptor.count").value
    ends = os.pipe()
    assert metrics.one("process.open_file_descriptor.count").value == before + 2
    for end in ends:
        os.close(end)
    assert metrics.one("process.open_file_descriptor.count").value == before


def test_the_instruments_are_those_of_the_conventions(metrics):
    """CPU time is a counter, the others may go down."""
    observe_process(metrics.meter)
    kinds = {one.name: (one.unit, one.data.is_monotonic) for one in metrics.data()}
    assert kinds == {
        "process.cpu.time": ("s", True),
        "process.memory.usage": ("By", False),
        "process.thread.count": ("{thread}", False),
        "process.open_file_descriptor.count": ("{file_descriptor}", False),
    }

"""What the operating system says of this process: CPU time, memory, threads, open files.

Names, types and units are those of OpenTelemetry's conventions for processes. Everything is read
when metrics are collected (0.2 ms, more with thousands of open files), in the thread that does so.
"""

import os
from collections.abc import Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from gymlog.semconv import CPU_MODE

__all__ = ["observe_process"]


def observe_process(meter: Meter) -> None:
    """Have a meter collect them; in a forked child they are the child's own."""
    meter.create_observable_counter(
        "process.cpu.time", [_cpu_time], "s", "CPU time that the process took"
    )
    meter.create_observable_up_down_counter(
        "process.memory.usage", [_memory_usage], "By", "Physical memory that the process holds"
    )
    meter.create_observable_up_down_counter(
        "process.thread.count", [_thread_count], "{thread}", "Threads of the process"
    )
    meter.create_observable_up_down_counter(
        "process.open_file_descriptor.count",
        [_open_file_descriptors],
        "{file_descriptor}",
        "File descriptors that the process has open",
    )


def _cpu_time(options: CallbackOptions) -> Iterable[Observation]:
    del options
    times = os.times()
    yield Observation(times.user, {CPU_MODE: "user"})
    yield Observation(times.system, {CPU_MODE: "system"})


# psutil takes a while to load, and a Process of it is one of the process that made it: both wait
# until metrics are collected.


def _memory_usage(options: CallbackOptions) -> Iterable[Observation]:
    del options
    from psutil import Process

    yield Observation(Process().memory_info().rss)


def _thread_count(options: CallbackOptions) -> Iterable[Observation]:
    del options
    from psutil import Process

    yield Observation(Process().num_threads())


def _open_file_descriptors(options: CallbackOptions) -> Iterable[Observation]:
    del options
    from psutil import Process

    yield Observation(Process().num_fds())

"""Memory of real process trees, against what /proc and psutil say."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gymlog.observers import memory
from gymlog.observers.memory import MemoryProfiler, ServerProcess

MB = 1_000_000

TREE = """
import subprocess, sys
megabytes, children = int(sys.argv[1]), int(sys.argv[2])
held = b"\\x01" * (megabytes * 1_000_000)
below = [
    subprocess.Popen([sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for _ in range(children)
]
for child in below:
    child.stdout.readline()
print("ready", flush=True)
sys.stdin.read()
for child in below:
    child.communicate()
"""

needs_pss = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="the kernel gives no PSS"
)


@contextmanager
def tree(megabytes=0, children=0):
    """Run a process that holds so much and has so many children."""
    command = [sys.executable, "-c", TREE, str(megabytes), str(children)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        end(process)


def end(process):
    """Let a process end, and wait for it."""
    process.stdin.close()
    process.wait()


@pytest.fixture
def profiler(metrics):
    """A profiler that samples every 10 ms; no thread of it is left."""
    profiler = MemoryProfiler(metrics.meter, 0.01)
    yield profiler
    profiler.stop()
    assert "gymlog-memory" not in {thread.name for thread in threading.enumerate()}


def by_attributes(points):
    return {
        (point.attributes["nemo.gym.server.name"], point.attributes.get("memory.type")): point.value
        for point in points
    }


def test_a_tree_is_the_sum_of_its_processes(metrics, profiler, until):
    """
    agent ─┬─ child      model
           └─ child
    """
    with tree(megabytes=40, children=2) as agent, tree() as model:
        profiler.start(
            [
                ServerProcess("agent", "responses_api_agents", agent.pid),
                ServerProcess("policy", "responses_api_models", model.pid),
            ]
        )
        until(lambda: "gym.server.processes" in metrics.collect())
        found = metrics.collect()
        assert by_attributes(found["gym.server.processes"]) == {
            ("agent", None): 3,
            ("policy", None): 1,
        }
        usage = by_attributes(found["gym.server.memory.usage"])
        members = [psutil.Process(agent.pid), *psutil.Process(agent.pid).children(recursive=True)]
        resident = sum(member.memory_info().rss for member in members)
        assert len(members) == 3
        assert usage["agent", "rss"] == pytest.approx(resident, rel=0.1)
        assert usage["agent", "rss"] > 40 * MB + 2 * usage["policy", "rss"] / 2
        (one, *_) = found["gym.server.processes"]
        assert dict(one.attributes) == {
            "nemo.gym.server.name": "agent",
            "nemo.gym.server.type": "responses_api_agents",
            "process.pid": agent.pid,
        }


@needs_pss
def test_pss_counts_shared_pages_once(metrics, profiler, until):
    """Three processes of one program share its code: less than RSS, more than what is their own."""
    with tree(megabytes=40, children=2) as process:
        profiler.start([ServerProcess("agent", "type", process.pid)])
        until(lambda: "gym.server.memory.usage" in metrics.collect())
        usage = by_attributes(metrics.collect()["gym.server.memory.usage"])
    assert 40 * MB < usage["agent", "pss"] < usage["agent", "rss"]


def test_a_tree_has_no_pss_unless_each_process_has(monkeypatch):
    """A sum over some of them would be neither."""
    with tree(children=1) as process:
        members = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
        monkeypatch.setattr(memory, "_pss", lambda pid: None if pid == members[1].pid else 1)
        whole = memory._measure(members)
        assert (whole.processes, whole.pss) == (2, None)
        assert memory._measure(members[:1]).pss == 1


def test_a_kernel_without_pss_leaves_it_out(metrics, profiler, until, monkeypatch):
    """RSS is there all the same."""
    monkeypatch.setattr(memory, "_pss", lambda pid: None)
    with tree() as process:
        profiler.start([ServerProcess("agent", "type", process.pid)])
        until(lambda: "gym.server.memory.usage" in metrics.collect())
        assert set(by_attributes(metrics.collect()["gym.server.memory.usage"])) == {
            ("agent", "rss")
        }


def test_a_process_that_vanishes_while_it_is_looked_at_is_left_out():
    """Gone for good, or a zombie that nobody has waited for yet."""
    with tree() as lasting, tree() as gone:
        members = [psutil.Process(gone.pid), psutil.Process(lasting.pid)]
        end(gone)
        zombie = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        members.append(psutil.Process(zombie.pid))
        measured = memory._measure(members)
        zombie.wait()
        assert measured.processes == 1
        assert measured.rss == pytest.approx(psutil.Process(lasting.pid).memory_info().rss, rel=0.1)


def test_a_server_that_ended_is_not_reported_any_more(metrics, profiler, until):
    """Nor is another process that has got its number; one that never was does no harm."""
    with tree() as ending, tree() as lasting:
        profiler.start(
            [
                ServerProcess("ending", "type", ending.pid),
                ServerProcess("lasting", "type", lasting.pid),
                ServerProcess("never", "type", 2**22 + 1),
            ]
        )

        def servers():
            points = metrics.collect().get("gym.server.processes", [])
            return {point.attributes["nemo.gym.server.name"] for point in points}

        until(lambda: servers() == {"ending", "lasting"})
        end(ending)
        until(lambda: servers() == {"lasting"})


def test_host_memory_is_what_the_system_says(metrics, profiler, until):
    """Usage is what is not available."""
    profiler.start([])
    until(lambda: "gym.host.memory.total" in metrics.collect())
    found = {name: points[0].value for name, points in metrics.collect().items()}
    assert found["gym.host.memory.total"] == psutil.virtual_memory().total
    usage, available = found["gym.host.memory.usage"], found["gym.host.memory.available"]
    assert 0 < available < found["gym.host.memory.total"]
    assert usage + available == found["gym.host.memory.total"]
    assert found["gym.host.memory.sampled_peak"] >= usage
    assert "gym.server.memory.usage" not in found


def test_a_peak_between_two_exports_is_seen_and_then_over(metrics, until):
    """
    rss   ▁▁▇▁▁│▁▁▁▁   usage is what is now, the peak what was highest in the last interval
    """
    profiler = MemoryProfiler(metrics.meter, 0.01, export_interval_seconds=0.5)
    with grower() as (process, say):
        profiler.start([ServerProcess("agent", "type", process.pid)])

        def mb(name):
            return by_attributes(metrics.collect().get(name, [])).get(("agent", "rss"), 0) / MB

        until(lambda: mb("gym.server.memory.usage") > 0)
        small = mb("gym.server.memory.usage")
        say("grow")
        until(lambda: mb("gym.server.memory.usage") > small + 60)
        say("shrink")
        until(lambda: mb("gym.server.memory.usage") < small + 30)
        assert mb("gym.server.memory.sampled_peak") > small + 60
        until(lambda: mb("gym.server.memory.sampled_peak") < small + 30)
    profiler.stop()


GROWER = """
import mmap
held = None
while True:
    print("done", flush=True)
    word = input()
    if word == "grow":
        held = mmap.mmap(-1, 80_000_000)
        held.write(b"\\x01" * 80_000_000)
    elif word == "shrink":
        held.close()
    else:
        break
"""


@contextmanager
def grower():
    """Run a process that takes 80 MB when told to grow, and gives them back."""
    with subprocess.Popen(
        [sys.executable, "-c", GROWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def say(word):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            if word != "end":
                assert process.stdout.readline() == "done\n"

        assert process.stdout.readline() == "done\n"
        yield process, say
        say("end")


def test_after_stop_the_last_samples_are_there_for_a_last_export(metrics, until):
    """And no longer than that."""
    profiler = MemoryProfiler(metrics.meter, 0.01, export_interval_seconds=0.3)
    profiler.start([])
    until(lambda: "gym.host.memory.usage" in metrics.collect())
    profiler.stop()
    assert "gym.host.memory.usage" in metrics.collect()
    until(lambda: "gym.host.memory.usage" not in metrics.collect())


def test_start_again_goes_on_with_other_servers(metrics, profiler, until):
    """One thread, whatever is started how often."""
    with tree() as first, tree() as second:
        for name, process in (("first", first), ("second", second)):
            profiler.start([ServerProcess(name, "type", process.pid)])
            until(
                lambda name=name: (
                    (name, None) in by_attributes(metrics.collect().get("gym.server.processes", []))
                )
            )
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("gymlog-memory") == 1
        until(
            lambda: (
                set(by_attributes(metrics.collect()["gym.server.processes"])) == {("second", None)}
            )
        )


def test_a_sample_that_fails_is_told_and_the_next_one_comes(
    metrics, profiler, until, monkeypatch, capfd
):
    """The supervisor gets no exception."""
    from gymlog import notices

    failing = iter([PermissionError("no /proc")])
    whole = memory._sample

    def sample(roots):
        for error in failing:
            raise error
        return whole(roots)

    notices.reset()
    monkeypatch.setattr(memory, "_sample", sample)
    profiler.start([])
    until(lambda: "gym.host.memory.usage" in metrics.collect())
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "no /proc" in told

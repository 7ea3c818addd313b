"""What telemetry costs a whole fleet: `gymlog demo` with it, without it, and under the SDK.

Every run is a process tree of its own; the subjects take turns, so that a slow moment hits all.
`off` is `--no-telemetry`. `sdk` (with --sdk) is the same with OpenTelemetry's instrumentations of
FastAPI (without send and receive spans) and of aiohttp's client, batch processor and console
exporter, one line a span: it has the 14 HTTP spans of a rollout, not the five that the servers
make by hand. Rates are of this machine, only the ratios say something; CPU is of all processes
and varies less than the time. Event-loop lag and time of the garbage collector are measured from
outside, in all subjects alike (`fleet_probe`), while the rollouts run; the agent has the busiest
loop, `all` is every process's. The fleet's own timeouts are lengthened, so that a subject too slow
for them is measured too.

What gymlog wrote is read in full. The exit code is 1 when a rollout failed, a number is missing,
a process counts other spans than there are lines, or a trace is not whole.

    python tests/bench/bench_fleet.py [--json] [--rollouts 2048] [--concurrency 2048]
        [--latency-scale 1] [--rounds 2] [--sdk]
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import fleet_probe
import orjson

SPANS_PER_ROLLOUT = 19
HTTP_SPANS_PER_ROLLOUT = 14
COUNTERS = ("spans_written", "records_dropped", "open_spans")
SHOWN_LAGS = ("agent", "all")
GRACE_SECONDS = 60
"""What the processes may take to stop: spans still in the SDK's queue are not lost by our doing."""

SITE = """
import fleet_probe

fleet_probe.watch()
"""
"""A `sitecustomize` for the fleet's processes, which know nothing of it."""

SDK_SITE = """
import sys

if any(argument.startswith("gymlog.fleet.") for argument in sys.orig_argv):
    from opentelemetry import trace
    from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    exporter = ConsoleSpanExporter(
        formatter=lambda span: ReadableSpan.to_json(span, indent=None) + "\\n"
    )
    trace.set_tracer_provider(TracerProvider())
    trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(exporter))
    FastAPIInstrumentor().instrument(exclude_spans=["receive", "send"])
    AioHttpClientInstrumentor().instrument()
"""
"""What the SDK's subject adds to it."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Quantiles of event-loop lag, in ms."""

    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Lag":
        ordered = sorted(seconds)
        p50, p99, greatest = (
            round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e3, 1)
            for share in (0.5, 0.99, 1)
        )
        return cls(p50, p99, greatest)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the fleet took."""

    done: int
    """Rollouts that ended well."""
    rate: float
    """Of those, per second."""
    cpu_ms: float
    """Of all processes, per rollout, their start included."""
    peak_mib: float
    """Resident memory of the largest process."""
    gc_ms: float
    """Garbage collector's time in all processes, per rollout."""
    lags: dict[str, Lag]
    """By process, and of all."""


@dataclass
class Subject:
    """One way to run the fleet, and its runs."""

    name: str
    options: tuple[str, ...] = ()
    site: str = SITE
    runs: list[Run] = field(default_factory=list)

    def run(self, folder: Path, arguments: argparse.Namespace) -> list[str]:
        """Run the fleet once, with its logs in `folder`; return what went wrong."""
        command = [sys.executable, "-m", "gymlog.cli", "demo", "--no-show", f"--out={folder}"]
        command += [f"--rollouts={arguments.rollouts}", f"--concurrency={arguments.concurrency}"]
        command += [f"--latency-scale={arguments.latency_scale}", "--span-groups=per_rollout"]
        command += [f"--grace-seconds={GRACE_SECONDS}"]
        said = folder / "demo.stderr"
        with said.open("wb") as stderr:
            process = subprocess.Popen(
                [*command, *self.options], stderr=stderr, env=self._environ(folder)
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        words = said.read_text()
        result = re.search(r"^([\d,]+) of .* rollouts done in ([\d.]+) s$", words, re.MULTILINE)
        done = int(result[1].replace(",", "")) if result else 0
        if result is None or not done:
            return [f"{self.name}: exit code {process.returncode}: {words.strip()}"]
        try:
            watched = fleet_probe.lags_by_process(folder)
        except ValueError as error:
            return [f"{self.name}: {error}"]
        lags = {name: Lag.of(mine.seconds) for name, mine in watched.items()}
        lags["all"] = Lag.of(chain.from_iterable(mine.seconds for mine in watched.values()))
        self.runs.append(
            Run(
                done=done,
                rate=done / float(result[2]),
                cpu_ms=(usage.ru_utime + usage.ru_stime) * 1e3 / done,
                peak_mib=usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10),
                gc_ms=sum(mine.gc_seconds for mine in watched.values()) * 1e3 / done,
                lags=lags,
            )
        )
        if process.returncode or done != arguments.rollouts:
            return [f"{self.name}: exit code {process.returncode}, {done} rollouts done: {words}"]
        return []

    def _environ(self, folder: Path) -> dict[str, str]:
        """Return an environment without telemetry's settings, but with this subject's site."""
        site = folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(self.site)
        paths = [str(site), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        return {
            **{key: value for key, value in os.environ.items() if "OTEL" not in key},
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            fleet_probe.FOLDER_VARIABLE: str(folder),
        }

    @property
    def best_rate(self) -> float:
        return max(run.rate for run in self.runs)

    @property
    def least_cpu_ms(self) -> float:
        return min(run.cpu_ms for run in self.runs)

    def best_lag(self, name: str) -> Lag:
        """Return the lag of a process in the run in which its p99 was lowest."""
        return min((run.lags[name] for run in self.runs), key=lambda lag: lag.p99)

    def report(self) -> dict[str, Any]:  # Any: JSON
        """Return best, worst and spread of the runs."""
        best, worst = self.best_rate, min(run.rate for run in self.runs)
        return {
            "rollouts_per_second": round(best, 1),
            "worst_rollouts_per_second": round(worst, 1),
            "spread_percent": round((best - worst) / best * 100, 1),
            "cpu_ms_per_rollout": round(self.least_cpu_ms, 2),
            "gc_ms_per_rollout": round(min(run.gc_ms for run in self.runs), 2),
            "peak_mib": round(max(run.peak_mib for run in self.runs)),
            "lag_ms": {
                name: asdict(self.best_lag(name))
                | {"worst_p99": max(run.lags[name].p99 for run in self.runs)}
                for name in self.runs[0].lags
            },
        }


def logged_records(
    folder: Path, problems: list[str]
) -> Iterator[dict[str, Any]]:  # Any: see gymlog.record
    """Yield every record of a folder's logs; lines that are none are problems."""
    for log in sorted(folder.glob("*.log")):
        with log.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    problems.append(f"{log.name}:{number}: {error}")


def check(folder: Path, rollouts: int) -> tuple[dict[str, int], list[str]]:
    """Read what gymlog wrote; return counts, and what is missing or wrong."""
    problems: list[str] = []
    numbers: dict[str, list[int]] = defaultdict(list)
    written: dict[str, int] = defaultdict(int)
    stopped: dict[str, dict[str, object]] = {}
    traces: dict[str, dict[str, str | None]] = defaultdict(dict)
    for record in logged_records(folder, problems):
        instance = record["resource"]["attributes"]["service.instance.id"]
        numbers[instance].append(record["seq"])
        if record["record_type"] == "span":
            written[instance] += 1
            traces[record["trace_id"]][record["span_id"]] = record["parent_span_id"]
        elif record.get("state") == "stopped":
            stopped[instance] = record
    for instance, mine in numbers.items():
        if sorted(mine) != list(range(len(mine))):
            problems.append(f"instance {instance}: {len(mine)} lines, last number {max(mine)}")
        counted = [stopped.get(instance, {}).get(key) for key in COUNTERS]
        if counted != [written[instance], 0, 0]:
            problems.append(
                f"instance {instance}: {written[instance]} span lines, but its `stopped` record "
                f"says {dict(zip(COUNTERS, counted, strict=True))}"
            )
    whole = sum(
        len(parents) == SPANS_PER_ROLLOUT
        and sum(parent is None for parent in parents.values()) == 1
        and all(parent is None or parent in parents for parent in parents.values())
        for parents in traces.values()
    )
    if not whole == len(traces) == rollouts:
        problems.append(f"{rollouts} rollouts, {len(traces)} traces, {whole} of them whole")
    counts = {
        "lines": sum(map(len, numbers.values())),
        "spans": sum(written.values()),
        "bytes": sum(log.stat().st_size for log in folder.glob("*.log")),
        "processes": len(numbers),
        "whole_traces": whole,
    }
    return counts, problems


def count_sdk_spans(folder: Path) -> int:
    """Return how many spans of rollouts the SDK's exporters wrote."""
    count = 0
    for log in folder.glob("*.log"):
        with log.open("rb") as lines:
            count += sum(
                b'"parent_id": ' in line and b'"GET /health"' not in line for line in lines
            )
    return count


def measure(
    subjects: list[Subject], folder: Path, arguments: argparse.Namespace
) -> tuple[dict[str, int], list[float], list[str]]:
    """Run all subjects in turns; return gymlog's last counts, the SDK's losses, the problems."""
    counts: dict[str, int] = {}
    losses: list[float] = []
    problems: list[str] = []
    for number in range(arguments.rounds):
        for subject in subjects:
            with tempfile.TemporaryDirectory(dir=folder) as name:
                own = Path(name)
                before = len(subject.runs)
                failed = subject.run(own, arguments)
                problems += failed
                if subject.name == "gymlog" and not failed:
                    counts, found = check(own, arguments.rollouts)
                    problems += found
                has_run = len(subject.runs) > before
                if subject.name == "sdk" and has_run:
                    made = subject.runs[-1].done * HTTP_SPANS_PER_ROLLOUT
                    losses.append(max(1 - count_sdk_spans(own) / made, 0.0) * 100)
            rate = f"{subject.runs[-1].rate:.1f} rollouts/s" if has_run else "failed"
            print(f"round {number + 1}: {subject.name} {rate}", file=sys.stderr)
    return counts, losses, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2048)
    parser.add_argument("--concurrency", type=int, default=2048)
    parser.add_argument("--latency-scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sdk", action="store_true", help="run it under OpenTelemetry's SDK too")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    subjects = [Subject("off", ("--no-telemetry",)), Subject("gymlog")]
    if arguments.sdk:
        subjects.append(Subject("sdk", ("--no-telemetry",), SITE + SDK_SITE))
    with tempfile.TemporaryDirectory() as name:
        counts, losses, problems = measure(subjects, Path(name), arguments)
    packages = ("gymlog", "fastapi", "uvicorn", "aiohttp", "opentelemetry-sdk")
    report = {
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in packages},
        "cpus": os.cpu_count(),
        "rollouts": arguments.rollouts,
        "concurrency": arguments.concurrency,
        "rounds": arguments.rounds,
        "subjects": {subject.name: subject.report() for subject in subjects if subject.runs},
        "ratios": ratios(subjects),
        "written": counts,
        "problems": problems,
    }
    if losses:
        report["sdk_lost_percent"] = round(max(losses), 1)
    print(json.dumps(report) if arguments.json else as_text(report))
    return 1 if problems else 0


def ratios(subjects: list[Subject]) -> dict[str, float]:
    """Return each subject's throughput, CPU and lag beside `off`'s, best against best.

    A lag below 1 ms, which the probe cannot tell from none, counts as 1 ms.
    """
    off, *others = subjects
    return {
        f"{other.name} / off, {what}": round(value, 3)
        for other in others
        if off.runs and other.runs
        for what, value in (
            ("throughput", other.best_rate / off.best_rate),
            ("CPU", other.least_cpu_ms / off.least_cpu_ms),
            *(
                (f"lag p99 {of}", max(other.best_lag(of).p99, 1) / max(off.best_lag(of).p99, 1))
                for of in SHOWN_LAGS
            ),
        )
    }


def as_text(report: dict[str, Any]) -> str:  # Any: JSON
    lines = [" ".join(f"{name} {number}" for name, number in report["versions"].items())]
    for name, values in report["subjects"].items():
        lines.append(
            f"{name:7} {values['rollouts_per_second']:8.1f} rollouts/s best of {report['rounds']} "
            f"(spread {values['spread_percent']:.1f} %), {values['cpu_ms_per_rollout']:.2f} ms CPU "
            f"a rollout, {values['gc_ms_per_rollout']:.2f} of them GC, {values['peak_mib']} MiB in "
            "the largest process"
        )
        lines += [
            f"{name:7} event-loop lag, {of:5}  p50 {lag['p50']:8.1f} ms  p99 {lag['p99']:8.1f} ms "
            f"(worst round {lag['worst_p99']:.1f})  max {lag['max']:8.1f} ms"
            for of, lag in values["lag_ms"].items()
            if of in SHOWN_LAGS
        ]
    lines += [f"{name:28} {ratio:6.3f}" for name, ratio in report["ratios"].items()]
    lines += [", ".join(f"{name} {count:,}" for name, count in report["written"].items())]
    if "sdk_lost_percent" in report:
        lines += [f"spans that the SDK lost: {report['sdk_lost_percent']} %"]
    lines += [f"PROBLEM {problem}" for problem in report["problems"]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

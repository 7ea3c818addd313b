"""What telemetry costs a whole fleet: `gymlog demo` with it, without it, and under the SDK.

Every run is a process tree of its own; the subjects take turns, so that a slow moment hits all.
`off` is `--no-telemetry`. `sdk` (with --sdk) is the same with OpenTelemetry's instrumentations of
FastAPI (without send and receive spans) and of aiohttp's client, batch processor and console
exporter, one line a span: it has the 14 HTTP spans of a rollout, not the five that the servers
make by hand. Rates are of this machine, only the ratios say something; CPU is of all processes
and varies less than the time.

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
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import orjson

SPANS_PER_ROLLOUT = 19
HTTP_SPANS_PER_ROLLOUT = 14
COUNTERS = ("spans_written", "records_dropped", "open_spans")

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
"""A `sitecustomize` for the fleet's processes, which know nothing of it."""


@dataclass
class Subject:
    """One way to run the fleet, and what its runs took."""

    name: str
    options: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)
    """Rollouts per second."""
    cpu_ms: list[float] = field(default_factory=list)
    """Of all processes, per rollout, their start included."""
    peak_mib: list[float] = field(default_factory=list)
    """Resident memory of the largest process."""

    def run(self, folder: Path, arguments: argparse.Namespace) -> list[str]:
        """Run the fleet once, with its logs in `folder`; return what went wrong."""
        command = [sys.executable, "-m", "gymlog.cli", "demo", "--no-show", f"--out={folder}"]
        command += [f"--rollouts={arguments.rollouts}", f"--concurrency={arguments.concurrency}"]
        command += [f"--latency-scale={arguments.latency_scale}", "--span-groups=per_rollout"]
        said = folder / "demo.stderr"
        with said.open("wb") as stderr:
            process = subprocess.Popen(
                [*command, *self.options],
                stderr=stderr,
                env={key: value for key, value in os.environ.items() if "OTEL" not in key}
                | self.variables,
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        words = said.read_text()
        result = re.search(r"^([\d,]+) of .* rollouts done in ([\d.]+) s$", words, re.MULTILINE)
        done = int(result[1].replace(",", "")) if result else 0
        if result is None or not done:
            return [f"{self.name}: exit code {process.returncode}: {words.strip()}"]
        self.rates.append(done / float(result[2]))
        self.cpu_ms.append((usage.ru_utime + usage.ru_stime) * 1e3 / done)
        self.peak_mib.append(usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10))
        if process.returncode or done != arguments.rollouts:
            return [f"{self.name}: exit code {process.returncode}, {done} rollouts done: {words}"]
        return []

    def report(self) -> dict[str, float]:
        """Return best, worst and spread of the runs."""
        best, worst = max(self.rates), min(self.rates)
        return {
            "rollouts_per_second": round(best, 1),
            "worst_rollouts_per_second": round(worst, 1),
            "spread_percent": round((best - worst) / best * 100, 1),
            "cpu_ms_per_rollout": round(min(self.cpu_ms), 2),
            "peak_mib": round(max(self.peak_mib)),
        }


def logged_records(folder: Path, problems: list[str]):
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
    numbers = defaultdict(list)
    written = defaultdict(int)
    stopped = {}
    traces = defaultdict(dict)
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
    return sum(
        b'"parent_id": ' in line and b'"GET /health"' not in line
        for log in folder.glob("*.log")
        for line in log.read_bytes().splitlines()
    )


def measure(
    subjects: list[Subject], folder: Path, arguments: argparse.Namespace
) -> tuple[dict[str, int], list[int], list[str]]:
    """Run all subjects in turns; return gymlog's last counts, the SDK's spans, the problems."""
    counts: dict[str, int] = {}
    sdk_spans: list[int] = []
    problems: list[str] = []
    for number in range(arguments.rounds):
        for subject in subjects:
            with tempfile.TemporaryDirectory(dir=folder) as name:
                own = Path(name)
                failed = subject.run(own, arguments)
                problems += failed
                if subject.name == "gymlog" and not failed:
                    counts, found = check(own, arguments.rollouts)
                    problems += found
                if subject.name == "sdk" and not failed:
                    sdk_spans.append(count_sdk_spans(own))
            rate = f"{subject.rates[-1]:.1f} rollouts/s" if subject.rates else "failed"
            print(f"round {number + 1}: {subject.name} {rate}", file=sys.stderr)
    return counts, sdk_spans, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2048)
    parser.add_argument("--concurrency", type=int, default=2048)
    parser.add_argument("--latency-scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sdk", action="store_true", help="run it under OpenTelemetry's SDK too")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(SDK_SITE)
        subjects = [Subject("off", ("--no-telemetry",)), Subject("gymlog")]
        if arguments.sdk:
            subjects.append(Subject("sdk", ("--no-telemetry",), {"PYTHONPATH": name}))
        counts, sdk_spans, problems = measure(subjects, folder, arguments)
    packages = ("gymlog", "fastapi", "aiohttp", "opentelemetry-sdk")
    report = {
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in packages},
        "rollouts": arguments.rollouts,
        "concurrency": arguments.concurrency,
        "rounds": arguments.rounds,
        "subjects": {subject.name: subject.report() for subject in subjects if subject.rates},
        "ratios": ratios(subjects),
        "written": counts,
        "problems": problems,
    }
    if sdk_spans:
        expected = arguments.rollouts * HTTP_SPANS_PER_ROLLOUT
        report["sdk_lost_percent"] = round((1 - min(sdk_spans) / expected) * 100, 1)
    print(json.dumps(report) if arguments.json else as_text(report))
    return 1 if problems else 0


def ratios(subjects: list[Subject]) -> dict[str, float]:
    """Return each subject's throughput and CPU beside `off`'s, best against best."""
    off, *others = subjects
    return {
        f"{other.name} / off, {what}": round(value, 3)
        for other in others
        if off.rates and other.rates
        for what, value in (
            ("throughput", max(other.rates) / max(off.rates)),
            ("CPU", min(other.cpu_ms) / min(off.cpu_ms)),
        )
    }


def as_text(report) -> str:
    lines = [" ".join(f"{name} {number}" for name, number in report["versions"].items())]
    lines += [
        f"{name:7} {values['rollouts_per_second']:8.1f} rollouts/s best of {report['rounds']} "
        f"(spread {values['spread_percent']:.1f} %) {values['cpu_ms_per_rollout']:7.2f} ms CPU "
        f"{values['peak_mib']:6} MiB in the largest process"
        for name, values in report["subjects"].items()
    ]
    lines += [f"{name:24} {ratio:6.3f}" for name, ratio in report["ratios"].items()]
    lines += [", ".join(f"{name} {count:,}" for name, count in report["written"].items())]
    if "sdk_lost_percent" in report:
        lines += [f"spans that the SDK lost: {report['sdk_lost_percent']} %"]
    lines += [f"PROBLEM {problem}" for problem in report["problems"]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

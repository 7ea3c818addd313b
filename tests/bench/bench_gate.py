"""What a closed call site costs: the gate and `managed_span`, beside a bare frozenset test.

Structure blocks: a closed site must allocate nothing and leave the current context as it was; the
program exits 1 otherwise. Times are of this machine; the ratios are what counts.

    python tests/bench/bench_gate.py [--json] [--rounds 30]
"""

import argparse
import json
import platform
import sys
import timeit
import tracemalloc

from opentelemetry.context import get_current

from gymlog import is_span_group_enabled, managed_span, span_groups

GROUPS = frozenset({"server", "http_client", "rollout"})
CALLS = 50_000


def bare() -> bool:
    return "verify" in GROUPS


def gate() -> bool:
    return is_span_group_enabled("verify")


def site() -> None:
    with managed_span("verify", "gym.verify"):
        pass


def empty() -> None:
    pass


def allocated_by(subject: object, calls: int = 1000) -> int:
    """Return the bytes that `calls` calls leave behind."""
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(calls):
        subject()  # type: ignore[operator]
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    changes = after.compare_to(before, "lineno")
    return sum(change.size_diff for change in changes if "gymlog/" in change.traceback[0].filename)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    span_groups.open_groups("default")
    context = get_current()
    times = {
        subject.__name__: [
            seconds / CALLS * 1e9
            for seconds in timeit.repeat(subject, number=CALLS, repeat=options.rounds)
        ]
        for subject in (empty, bare, gate, site)
    }
    best = {name: min(values) for name, values in times.items()}
    net_bare = best["bare"]
    report = {
        "python": platform.python_version(),
        f"nanoseconds, best of {options.rounds}": {
            name: round(value, 1) for name, value in best.items()
        },
        "spread in percent": {
            name: round((max(values) / min(values) - 1) * 100) for name, values in times.items()
        },
        "ratios": {
            "gate / bare test in a function": round(best["gate"] / net_bare, 2),
            "managed_span block / bare test in a function": round(best["site"] / net_bare, 2),
        },
        "bytes allocated": {"gate": allocated_by(gate), "managed_span": allocated_by(site)},
        "context unchanged": get_current() is context,
    }
    if options.json:
        print(json.dumps(report))
    else:
        for title, value in report.items():
            print(f"{title}: {value}")
    broken = any(report["bytes allocated"].values()) or not report["context unchanged"]
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

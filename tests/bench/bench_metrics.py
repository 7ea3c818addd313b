"""What a measurement costs: gymlog's own instruments beside those of OpenTelemetry's SDK.

A duration with the attributes of an HTTP request, into a histogram; the values are those of one
request after another, and rising ones, of which each is the greatest so far and may become the
exemplar. Every contender collects when a round is over, inside the time. `timed` is the block of a
call site, with metrics on and off. Times are of this machine; the ratios are what counts.

    python tests/bench/bench_metrics.py [--json] [--measurements 20000] [--rounds 15]
"""

import argparse
import json
import platform
import random
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gymlog import testing
from gymlog.metrics import instruments
from gymlog.metrics.harvest import Harvest
from gymlog.metrics.instruments import (
    HTTP_SERVER_ACTIVE_REQUESTS,
    HTTP_SERVER_DURATION,
    ROLLOUT_DURATION,
    timed,
)

KEY = ("POST", "http", "/v1/responses", 200, None)
ATTRIBUTES = HTTP_SERVER_DURATION.attributes_of(KEY)
GOAL_US = 1.2

Round = Callable[[list[float]], None]


def sdk_contenders() -> dict[str, Round]:
    """Return the SDK's ways to measure some values and collect them."""
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("bench")
    bounds = HTTP_SERVER_DURATION._bounds
    histogram = meter.create_histogram("h", "s", explicit_bucket_boundaries_advisory=bounds)
    counter = meter.create_up_down_counter("c")

    def record(values: list[float]) -> None:
        for value in values:
            histogram.record(value, ATTRIBUTES)
        reader.get_metrics_data()

    def add(values: list[float]) -> None:
        for _ in values:
            counter.add(1, ATTRIBUTES)
        reader.get_metrics_data()

    return {"sdk histogram": record, "sdk counter": add}


def own_contenders(harvest: Harvest) -> dict[str, Round]:
    """Return gymlog's ways to measure some values and collect them."""

    def record(values: list[float]) -> None:
        for value in values:
            HTTP_SERVER_DURATION.record(value, ("POST", "http", "/v1/responses", 200, None))
        harvest.collect()

    def add(values: list[float]) -> None:
        for _ in values:
            HTTP_SERVER_ACTIVE_REQUESTS.add(1, ("POST", "http"))
        harvest.collect()

    def block(values: list[float]) -> None:
        for _ in values:
            with timed(ROLLOUT_DURATION):
                pass
        harvest.collect()

    def block_off(values: list[float]) -> None:
        instruments.are_on = False
        for _ in values:
            with timed(ROLLOUT_DURATION):
                pass
        instruments.are_on = True

    return {
        "gymlog histogram": record,
        "gymlog counter": add,
        "timed block": block,
        "timed block, off": block_off,
    }


def measure(measurements: int, rounds: int) -> dict[str, list[float]]:
    """Return the µs of one measurement in each round, by contender, and by kind of values."""
    draw = random.Random(0)
    values = [draw.lognormvariate(-1, 0.5) for _ in range(measurements)]
    kinds = {"": values, ", rising": sorted(values)}
    taken: dict[str, list[float]] = {}
    with testing.captured() as telemetry, telemetry.tracer.start_as_current_span("request"):
        instruments.switch(on=True)
        ways = sdk_contenders() | own_contenders(Harvest(is_delta=True))
        for _ in range(rounds):
            for kind, given in kinds.items():
                for name, run in ways.items():
                    if kind and "histogram" not in name:
                        continue
                    begin = time.perf_counter()
                    run(given)
                    microseconds = (time.perf_counter() - begin) / measurements * 1e6
                    taken.setdefault(name + kind, []).append(microseconds)
        instruments.switch(on=False)
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measurements", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    taken = measure(arguments.measurements, arguments.rounds)
    best = {name: min(times) for name, times in taken.items()}
    report = {
        "python": platform.python_version(),
        "opentelemetry-sdk": version("opentelemetry-sdk"),
        "microseconds": {name: round(value, 2) for name, value in best.items()},
        "worst_microseconds": {name: round(max(times), 2) for name, times in taken.items()},
        "ratios": {
            f"sdk / gymlog, {what}": round(best[f"sdk {what}"] / best[f"gymlog {what}"], 1)
            for what in ("histogram", "histogram, rising", "counter")
        },
        "goal_met": best["gymlog histogram, rising"] <= GOAL_US,
    }
    if arguments.json:
        print(json.dumps(report))
    else:
        for name, value in best.items():
            print(f"{name:28} {value:7.2f} µs (worst round {max(taken[name]):.2f})")
        for name, ratio in report["ratios"].items():
            print(f"{name:28} {ratio:7.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

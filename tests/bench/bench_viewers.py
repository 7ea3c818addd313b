"""What the exports to viewers cost, beside `json.dumps` of the same spans as dicts.

The logs of a gym (`gym_logs.py`) are read into a store; each format then writes all spans
to nowhere. The floor reads the same columns, makes a dict of each span and encodes it.
Ratios are of the best rounds. `peak_mb` is what the process took above what it had once the
logs were read, so DuckDB's work for the queries counts; formats run in order, and a later one
reuses memory of an earlier one.

    python tests/bench/bench_viewers.py [--json] [--spans 100000] [--rounds 3] [--only WORD]
"""

import argparse
import io
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from gym_logs import write_gym_logs

from reconstruct.engine import Engine
from reconstruct.export import chrome, folded, perfetto, speedscope
from reconstruct.export.call_stacks import CallStacks
from reconstruct.export.drawn import Slice
from reconstruct.export.timeline import Timeline


def floor(engine: Engine, out: IO[bytes]) -> None:
    """Encode the rows of a timeline, as they are."""
    for span, _ in Timeline(engine).slices():
        out.write(json.dumps(dict(zip(Slice._fields, span, strict=True))).encode())


FORMATS: dict[str, Callable[[Engine, IO[bytes]], object]] = {
    "floor": floor,
    "perfetto": lambda engine, out: perfetto.write(Timeline(engine), out),
    "chrome": lambda engine, out: chrome.write(Timeline(engine), out),
    "folded": lambda engine, out: folded.write(CallStacks(engine, "self"), out),
    "speedscope": lambda engine, out: speedscope.write(
        {"self": CallStacks(engine, "self")}, out, name="bench"
    ),
}


class Nowhere(io.RawIOBase):
    """Counts bytes."""

    size = 0

    def write(self, data: object) -> int:
        self.size += len(data)  # type: ignore[arg-type]  # only bytes come
        return len(data)  # type: ignore[arg-type]  # as above


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(spans: int, rounds: int, only: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        logs, store = Path(folder, "logs"), Path(folder, "store")
        write_gym_logs(logs, spans)
        with Engine.read([str(logs)], store=store) as engine:
            (row,) = engine.rows("SELECT count(*) AS spans FROM spans")
            before = peak_mb()
            for name, write in FORMATS.items():
                if name != "floor" and only not in name:
                    continue
                best, out = float("inf"), Nowhere()
                for _ in range(rounds):
                    out, start = Nowhere(), time.perf_counter()
                    write(engine, out)  # type: ignore[arg-type]  # it is written to, no more
                    best = min(best, time.perf_counter() - start)
                found[name] = {
                    "spans_per_second": row["spans"] / best,
                    "times_the_floor": best / (found["floor"]["seconds"] if found else best),
                    "seconds": best,
                    "bytes_per_span": out.size / row["spans"],
                    "peak_mb": peak_mb() - before,
                }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    found = measure(options.spans, options.rounds, options.only)
    if options.json:
        print(json.dumps({"spans": options.spans, "cpus": os.cpu_count(), "formats": found}))
        return
    for name, figures in found.items():
        print(
            f"{name:12}{figures['spans_per_second']:>12,.0f} spans/s"
            f"{figures['times_the_floor']:>8.2f} x floor"
            f"{figures['bytes_per_span']:>10.1f} B/span{figures['peak_mb']:>8.0f} MB"
        )


if __name__ == "__main__":
    main()

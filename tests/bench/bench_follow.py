"""What `reconstruct follow` costs: a look at logs with little and with much past.

A look that finds nothing, one that finds ten lines in each of four files, each with its snapshot;
how fast the past is read, and in how much memory. The structure blocks: after much past a look may
read no more bytes than after little, else the program exits 1. Times are of this machine; the
ratios are what counts.

    python tests/bench/bench_follow.py [--json] [--megabytes 1 1000] [--looks 50] [--files 10000]
"""

import argparse
import json
import platform
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from gym_logs import SERVICES, write_gym_logs

from reconstruct.live.state import State
from reconstruct.live.tail import Tail

BYTES_PER_SPAN = 620
BATCH_ROWS = 50_000


def megabytes_now() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def new_lines(folder: Path) -> dict[str, bytes]:
    """Ten lines of each service, later than all others."""
    with tempfile.TemporaryDirectory() as name:
        write_gym_logs(Path(name), 400)
        return {
            service: b"".join(Path(name, f"{service}.log").read_bytes().splitlines(True)[1:11])
            for service in SERVICES
        }


def measure(megabytes: float, looks: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = write_gym_logs(folder, int(megabytes * 1e6 / BYTES_PER_SPAN))
        size = sum(path.stat().st_size for path in folder.iterdir())
        state, tail = State(), Tail([name])
        before = megabytes_now()
        begin = time.perf_counter()
        rows = 0
        for table, batch in tail.past():
            state.add(table, batch)
            rows += len(batch)
            if rows > BATCH_ROWS:
                rows = 0
                state.settle()
        state.snapshot(time.time_ns())
        seconds = time.perf_counter() - begin
        grown = megabytes_now() - before
        idle, busy, read = [], [], 0
        more = new_lines(folder)
        for _ in range(looks):
            begin = time.perf_counter()
            found = list(tail.look())
            state.snapshot(time.time_ns())
            idle.append(time.perf_counter() - begin)
            assert not found
            for service, text in more.items():
                with (folder / f"{service}.log").open("ab") as log:
                    log.write(text)
            begin, bytes_before = time.perf_counter(), bytes_read()
            for table, batch in tail.look():
                state.add(table, batch)
            state.snapshot(time.time_ns())
            busy.append(time.perf_counter() - begin)
            read = max(read, bytes_read() - bytes_before)
        return {
            "MB of past": round(size / 1e6, 1),
            "past, lines/s": round(lines / seconds),
            "past, MB/s": round(size / 1e6 / seconds, 1),
            "memory grown by, MB": round(grown, 1),
            "look without news, ms": round(statistics.median(idle) * 1e3, 3),
            "look with 40 lines, ms": round(statistics.median(busy) * 1e3, 3),
            "bytes read by it": read,
        }


def measure_many(files: int, looks: int) -> dict[str, float]:
    """Measure looks at many small files; the first of them grows."""
    with tempfile.TemporaryDirectory() as name:
        for number in range(files):
            Path(name, f"{number}.log").write_text("ready\n")
        tail = Tail([name])
        for _ in tail.past():
            pass
        spent = []
        for _ in range(looks):
            with Path(name, "0.log").open("a") as log:
                log.write("news\n")
            begin = time.perf_counter()
            found = list(tail.look())
            spent.append(time.perf_counter() - begin)
            assert found
        return {
            "files": files,
            "look, ms": round(statistics.median(spent) * 1e3, 2),
            "look with a search for new files, ms": round(max(spent) * 1e3, 1),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--megabytes", type=float, nargs=2, default=[1, 1000])
    parser.add_argument("--looks", type=int, default=50)
    parser.add_argument("--files", type=int, default=10_000)
    options = parser.parse_args()
    little, much = (measure(megabytes, options.looks) for megabytes in options.megabytes)
    report = {
        "python": platform.python_version(),
        "little past": little,
        "much past": much,
        "ratios": {
            name: round(much[name] / little[name], 2)
            for name in ("look without news, ms", "look with 40 lines, ms", "bytes read by it")
        },
        "many files": measure_many(options.files, options.looks),
    }
    if options.json:
        print(json.dumps(report))
    else:
        for title, value in report.items():
            print(f"{title}: {value}")
    return 1 if report["ratios"]["bytes read by it"] > 1.1 else 0


if __name__ == "__main__":
    sys.exit(main())

"""What reading costs, beside what DuckDB itself, jq and the reader's own other ways take.

In one run, over the same logs of a gym (`gym_logs.py`; a tenth of the lines is text):

- cold: the command from the logs to a store with every relation, to DuckDB's own `CREATE TABLE …
  FROM read_json` of the span columns, attributes as JSON, into a database file, and into memory;
- jq: the README's recipe that lists the spans of each trace (left out where there is no jq);
- careful: the same lines read one by one, to what reads many at a time, both into memory;
- warm: the command again, nothing changed; grown: again after a hundredth was appended;
- linear: cold over ten times less, and its time per line; peak memory of the command;
- questions: commands over the store that is there, their share of cold and their peak memory.

Times are of this machine; the ratios are what counts.

    python tests/bench/bench_intake.py [--json] [--spans 1000000] [--rounds 3]
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import duckdb
from gym_logs import write_gym_logs

from gymlog.record import SPAN, FieldType
from reconstruct.intake import files
from reconstruct.store import relations
from reconstruct.store.filling import fill

COLUMNS = {
    field.name: {FieldType.TEXT: "VARCHAR", FieldType.INT64: "BIGINT"}.get(field.type, "JSON")
    for field in SPAN
}
JQ = (
    "cat *.log | grep '\"trace_id\"' | jq -r "
    "'[.trace_id, .resource.attributes.\"service.name\", .kind, .name] | @tsv' | sort > /dev/null"
)
COMMAND = """
import io, json, sys
from contextlib import redirect_stdout
from peak_memory import peak_bytes
from reconstruct.cli import main
with redirect_stdout(io.StringIO()) as answer:
    code = main(["query", "SELECT count(*) AS n FROM spans", sys.argv[1], "--store", sys.argv[2],
                 "--format", "jsonl"])
assert code == 0 and json.loads(answer.getvalue())["n"] >= int(sys.argv[3])
print(peak_bytes())
"""
"""The command that makes the store, or renews it, and asks one thing."""

QUESTIONS = {
    "show 17-0": ("show", "17-0"),
    "traces --limit 20": ("traces", "--limit", "20"),
    "rollouts --service agent": ("rollouts", "--service", "agent"),
    "summary": ("summary",),
    "doctor": ("doctor",),
}
"""What is asked of a store, as the words of a command."""
QUESTION = """
import sys
from contextlib import redirect_stdout
from io import StringIO
from peak_memory import peak_bytes
from reconstruct.cli import main
with redirect_stdout(StringIO()):
    code = main(sys.argv[1:])
assert code in (0, 1), code  # 1 is an answer, too
print(peak_bytes())
"""


class Logs:
    """One size of logs, and the ways to read them."""

    def __init__(self, folder: Path, spans: int) -> None:
        self.logs = folder / f"logs-{spans}"
        self.spans = spans
        self.lines = write_gym_logs(self.logs, spans)
        self.store = folder / f"store-{spans}"
        self._program = folder / "command.py"
        self._program.write_text(COMMAND)
        # Modules are compiled once, as they are where a program is installed.
        self._environment = {
            **os.environ,
            "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
            "PYTHONPATH": str(Path(__file__).parent),
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.peak_bytes = 0

    def command(self) -> None:
        """Run a process that opens the store, made anew or renewed where needed."""
        done = subprocess.run(
            [sys.executable, self._program, str(self.logs), str(self.store), str(self.spans)],
            check=True,
            capture_output=True,
            env=self._environment,
        )
        self.peak_bytes = max(self.peak_bytes, int(done.stdout))

    def question(self, words: Sequence[str]) -> tuple[float, int]:
        """Ask a command of the store; return its seconds and its peak memory in bytes."""
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", QUESTION, *words, "--store", self.store, str(self.logs)],
            check=True,
            capture_output=True,
            env=self._environment,
        )
        return time.perf_counter() - begin, int(done.stdout)

    def cold(self) -> None:
        shutil.rmtree(self.store, ignore_errors=True)
        self.command()

    def grown(self) -> None:
        path = self.logs / "model.log"
        text = path.read_bytes()[: path.stat().st_size // 100]
        with path.open("ab") as file:
            file.write(text[: text.rfind(b"\n") + 1])
        self.command()

    def duckdb(self, database: str) -> None:
        Path(database).unlink(missing_ok=True)
        with duckdb.connect(database) as connection:
            connection.execute(
                f"CREATE TABLE spans AS FROM read_json('{self.logs}/*.log', columns = {COLUMNS}, "
                "format = 'newline_delimited', ignore_errors = true)"
            ).fetchall()
            if database != ":memory:":
                connection.execute("CHECKPOINT").fetchall()

    def quick(self) -> None:
        with duckdb.connect() as connection:
            relations.create_base_tables(connection)
            fill(connection, files.find([str(self.logs)]))

    def careful(self) -> None:
        """Read line by line, as whenever the wrapper is named: here, that there is none."""
        with duckdb.connect() as connection:
            relations.create_base_tables(connection)
            fill(connection, files.find([str(self.logs)]), wrapper="none")

    def jq(self) -> None:
        subprocess.run(["/bin/sh", "-c", JQ], check=True, cwd=self.logs)


def timed(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each in each round; one after the other, since machines change their
    pace."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    return seconds


def measure(spans: int, rounds: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large, small = Logs(folder, spans), Logs(folder, max(spans // 10, 16))
        often = {
            "duckdb, in memory": lambda: large.duckdb(":memory:"),
            "duckdb, to a file": lambda: large.duckdb(str(folder / "plain.duckdb")),
            "cold": large.cold,
            "warm": large.command,
            "cold, a tenth": small.cold,
            "quick": large.quick,
        }
        once = {"careful": large.careful, "grown": large.grown}
        if shutil.which("jq"):
            once["jq"] = large.jq
        seconds = timed(often, rounds)
        first = {"summary, first": large.question(("summary",))}
        questions = first | {name: large.question(words) for name, words in QUESTIONS.items()}
        seconds |= timed(once, 1)

        def ratio(name: str, other: str) -> float:
            """The median of the rounds' ratios."""
            pairs = zip(seconds[name], seconds[other], strict=False)
            return statistics.median(taken / others for taken, others in pairs)

        best = {name: min(times) for name, times in seconds.items()}
        ratios = {
            "cold / duckdb to a file": ratio("cold", "duckdb, to a file"),
            "cold / duckdb in memory": ratio("cold", "duckdb, in memory"),
            "careful / quick": ratio("careful", "quick"),
            "cold / warm": ratio("cold", "warm"),
            "cold per line, to that of a tenth": ratio("cold", "cold, a tenth")
            * small.lines
            / large.lines,
        }
        if "jq" in best:
            ratios["jq / cold"] = ratio("jq", "cold")
            ratios["jq / duckdb to a file"] = ratio("jq", "duckdb, to a file")
        return {
            "lines": large.lines,
            "seconds": {
                name: [round(each, 3) for each in sorted(times)] for name, times in seconds.items()
            },
            "ratios": {name: round(ratio, 2) for name, ratio in ratios.items()},
            "questions": {
                name: {
                    "seconds": round(taken, 3),
                    "to_cold": round(taken / best["cold"], 3),
                    "peak_mebibytes": round(peak / (1 << 20)),
                }
                for name, (taken, peak) in questions.items()
            },
            "peak_mebibytes": round(large.peak_bytes / (1 << 20)),
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("duckdb", "pyarrow", "orjson")},
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    result = measure(arguments.spans, arguments.rounds)
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{result['lines']:,} lines, peak memory {result['peak_mebibytes']} MiB")
    for name, times in result["seconds"].items():
        spread = f" … {times[-1]:.2f}" if len(times) > 1 else ""
        print(f"{name:<36}{times[0]:>8.2f}{spread} s")
    for name, asked in result["questions"].items():
        print(
            f"{name:<36}{asked['seconds']:>8.2f} s, {asked['to_cold']:.3f} of cold, "
            f"{asked['peak_mebibytes']} MiB"
        )
    for name, ratio in result["ratios"].items():
        print(f"{name:<36}{ratio:>8.2f}")
    print(", ".join(f"{name} {number}" for name, number in result["versions"].items()))


if __name__ == "__main__":
    main()

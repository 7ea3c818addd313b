"""What answers over a whole run cost, beside a plain query over the same spans.

The logs of a gym (`gym_logs.py`; one rollout of a hundred fails) are read into a store, which then
is there: the plain query counts spans by service, name and parent, with a quantile of their
durations, joined once with their parents. Beside it, one after the other in the same run:

- computed: what is kept in a store (`store.keeping.KEPT`), before it is;
- answers: one query each, over a store that keeps those.

Every column of every row is computed. Ratios are of the best rounds, to the plain query, in wall
clock time and in CPU time of all threads. With `--linear` the same is done over a tenth of the
spans, and told how the time per span grows from there. A new answer is one line of `ANSWERS`.

    python tests/bench/bench_answers.py [--json] [--spans 1000000] [--rounds 3] [--linear]
        [--only WORD]
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from gym_logs import BEGIN_UNIX_NANO, MS, write_gym_logs

from reconstruct.engine import Engine
from reconstruct.store.keeping import KEPT

PLAIN = """
    SELECT
        span.service_name,
        span.name,
        parent.name AS parent_name,
        count(*) AS spans,
        quantile_cont(span.duration_ns, 0.99) AS p99_ns
    FROM spans AS span
    LEFT JOIN spans AS parent
        ON parent.trace_id = span.trace_id
        AND parent.span_id = span.parent_span_id
    GROUP BY ALL
"""
COMPUTED = {f"{name}, computed": f"FROM {name}" for name in KEPT}
ANSWERS = {
    "critical path of all": "FROM critical_path",
    "blame by name": """
        SELECT service_name, name, sum(blame_ns)::BIGINT
        FROM blame
        JOIN spans USING (trace_id, span_id, occurrence)
        GROUP BY ALL
    """,
    "stats": "FROM stats",
    "stats by outcome, host": "FROM stats_by(['outcome', 'host_name'])",
    "stats by an attribute": "FROM stats_by(['service_name', 'http.request.method'])",
    "error causes": "FROM error_causes",
    "repeated calls": "FROM repeated_calls",
    "rollouts": "FROM rollouts",
    "steps": "FROM steps",
    "stragglers": "FROM stragglers",
    "straggler causes": "FROM straggler_causes",
    "concurrency": "FROM concurrency",
    "concurrency in 100 parts": "FROM concurrency_in(NULL, NULL, 100)",
    "stuck work": "FROM stuck_work",
    "stuck work at an instant": f"FROM stuck_work_at({BEGIN_UNIX_NANO + 10_000 * MS})",
    "running at an instant": f"FROM running_at({BEGIN_UNIX_NANO + 10_000 * MS})",
    "findings": "FROM findings",
    "service edges": "FROM service_edges",
}
"""What is asked of a store that keeps `KEPT`."""
GOAL = 6.0
"""So many times the plain query an answer may take."""
FAILING_EVERY = 100


def in_full(sql: str) -> str:
    """Return a query of one row that needs every value of another's."""
    return f"SELECT count(*), bit_xor(hash(answer)) FROM ({sql}) AS answer"


def timed(
    engine: Engine,
    queries: Mapping[str, str],
    rounds: int,
    before: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, dict[str, float]]:
    """Return wall clock and CPU seconds of the best round of each, and of those known before.

    One query after the other, round by round, since machines change their pace.
    """
    best = {name: dict(taken) for name, taken in (before or {}).items()}
    for _ in range(rounds):
        for name, sql in queries.items():
            wall, cpu = time.perf_counter(), time.process_time()
            engine.rows(in_full(sql))
            taken = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            known = best.get(name, taken)
            best[name] = {clock: min(known[clock], taken[clock]) for clock in taken}
    return best


def seconds_of(folder: Path, spans: int, rounds: int, only: str) -> dict[str, dict[str, float]]:
    """Write logs, read them into a store and time every query over it, by name."""
    logs, store = folder / f"logs-{spans}", folder / f"store-{spans}"
    write_gym_logs(logs, spans, failing_every=FAILING_EVERY)

    def chosen(queries: Mapping[str, str]) -> dict[str, str]:
        return {"plain": PLAIN, **{name: sql for name, sql in queries.items() if only in name}}

    with Engine.read([str(logs)], store=store) as engine:
        seconds = timed(engine, chosen(COMPUTED), rounds)
        engine.keep(*KEPT)
        return timed(engine, chosen(ANSWERS), rounds, seconds)


def measure(spans: int, rounds: int, *, is_linear: bool, only: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds = seconds_of(folder, spans, rounds, only)
        tenth = seconds_of(folder, spans // 10, rounds, only) if is_linear else {}
    plain = seconds["plain"]
    return {
        "spans": spans,
        "cpus": os.cpu_count(),
        "answers": {
            name: {
                "seconds": round(taken["wall"], 3),
                "to_plain": round(taken["wall"] / plain["wall"], 2),
                "cpu_to_plain": round(taken["cpu"] / plain["cpu"], 2),
                **(
                    {"per_span_to_tenth": round(taken["wall"] / tenth[name]["wall"] / 10, 2)}
                    if tenth
                    else {}
                ),
            }
            for name, taken in seconds.items()
        },
        "goal": GOAL,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("duckdb", "pyarrow")},
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--linear", action="store_true", help="also over a tenth of the spans")
    parser.add_argument("--only", default="", metavar="WORD", help="answers with this in the name")
    options = parser.parse_args()
    report = measure(options.spans, options.rounds, is_linear=options.linear, only=options.only)
    print(json.dumps(report) if options.json else as_text(report))
    return 0


def as_text(report: dict[str, object]) -> str:
    lines = [f"{report['spans']:,} spans, {report['cpus']} CPUs, goal {report['goal']} times plain"]
    for name, answer in report["answers"].items():
        linear = answer.get("per_span_to_tenth")
        more = "" if linear is None else f", {linear:.2f} per span to a tenth"
        lines.append(
            f"{name:<28}{answer['seconds']:>8.3f} s{answer['to_plain']:>8.2f} times plain, "
            f"CPU {answer['cpu_to_plain']:.2f}{more}"
        )
    lines.append(", ".join(f"{name} {number}" for name, number in report["versions"].items()))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

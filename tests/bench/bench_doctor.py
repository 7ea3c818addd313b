"""Whether the doctor finds what is broken, and nothing else: precision and recall per cause.

Faults are planted in logs of a small gym (`busy_gym.py`, `planted_faults.py`), many of them in one
log of healthy rollouts, or one in a log of its own; with --fleet in real runs of `gymlog demo` too.
A finding counts by its code, its cause and its trace. Proposed joins count as right when they name
the parent that the span had before. Exit code 1 when anything is below 0.95.

    python tests/bench/bench_doctor.py [--json] [--seeds 5] [--rollouts 300] [--fleet]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from busy_gym import ANY, SECOND, Log, Record
from planted_faults import LOG_FAULTS, ROLLOUT_FAULTS, SPECIAL_AGENTS

from reconstruct.engine import Engine

Expected: TypeAlias = set[tuple[str, str, str]]
"""Code, cause and subject of each finding that there should be."""

ENOUGH: Final = 0.95
JOINS: Final = "join_proposals"
SURE: Final = 0.5
"""Proposals with a lower score say themselves that they are guesses."""
FOLLOWING: Final = {
    "deduplicated",
    "duplicate_span",
    "errors",
    "lost_lines",
    "missing_root",
    "process_died",
    "slow_instance",
    "stalled_event_loop",
    "stuck",
    "torn_lines",
    "unanswered",
    "unfinished",
    "outside_parent",
}
"""Codes that a fault of another code may well bring with it: counted where they are planted."""


class Proposal(NamedTuple):
    """The parent that is proposed for a span."""

    parent_span_id: str
    score: float


@dataclass
class Score:
    """Findings of one code and cause."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


@dataclass
class Scores:
    """All scores so far, and what was wrong with some of them."""

    by_cause: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    examples: list[str] = field(default_factory=list)

    def add(self, where: str, expected: Expected, found: Expected) -> None:
        planted = {code for code, _, _ in expected}
        for code, cause, subject in sorted(expected | found):
            one = (code, cause, subject)
            score = self.by_cause[f"{code} {cause}".rstrip()]
            if one in expected and one in found:
                score.right += 1
            elif one in expected:
                score.missed += 1
                self.examples.append(f"{where}: missed {' '.join(one)}")
            elif code in planted or code not in FOLLOWING:
                score.wrong += 1
                self.examples.append(f"{where}: wrong {' '.join(one)}")

    @property
    def is_enough(self) -> bool:
        return all(min(score.precision, score.recall) >= ENOUGH for score in self.by_cause.values())


def ask(where: str, folder: Path, expected: Expected, scores: Scores) -> dict[str, Proposal]:
    """Compare what the doctor says of logs with what it should; return the proposed parents.

    Subjects are traces where such a finding is expected of traces.
    """
    about_traces = {(code, cause) for code, cause, subject in expected if subject != ANY}
    not_about = {(code, cause) for code, cause, subject in expected if subject == ANY}
    with Engine.read([str(folder)]) as engine:
        rows = engine.rows("SELECT DISTINCT code, cause, trace_id FROM findings")
        joins = engine.rows("SELECT span_id, parent_span_id, score FROM join_proposals")
    found: Expected = set()
    for row in rows:
        kind = (row["code"], row["cause"] or "")
        is_whole = kind in not_about and kind not in about_traces
        found.add((*kind, ANY if is_whole else row["trace_id"] or ANY))
    scores.add(where, expected, found)
    proposed = {row["span_id"]: Proposal(row["parent_span_id"], row["score"]) for row in joins}
    assert len(proposed) == len(joins), "a span has one proposal at most"
    return proposed


def compare_joins(proposed: dict[str, Proposal], log: Log, scores: Scores) -> None:
    """Compare proposed parents with those that the spans had; below a score of `SURE` they only
    have to be there."""
    score = scores.by_cause[JOINS]
    score.missed += len(log.parents.keys() - proposed.keys())
    for span_id, (parent, sureness) in proposed.items():
        if log.parents.get(span_id) == parent:
            score.right += 1
        elif sureness >= SURE or span_id not in log.parents:
            score.wrong += 1
            scores.examples.append(f"wrong parent {parent} of {span_id}")


def mixed(seed: int, rollouts: int, folder: Path) -> Log:
    """Write a log in which a third of the rollouts has a fault, every kind of them alike."""
    log = Log(seed)
    names = list(ROLLOUT_FAULTS)
    wanted = [names[number % len(names)] for number in range(rollouts // 3)]
    plan: list[str | None] = [*wanted, *[None] * (rollouts - len(wanted))]
    log.random.shuffle(plan)
    at_last = [name for name in plan if name == "parent_unfinished"]
    plan = [name for name in plan if name != "parent_unfinished"]
    for agent, port in (("agent-lossy", 8010), ("agent-away", 8011)):
        log.process(agent, "gym/agent", port=port)
    for number, name in enumerate(plan):
        agent = SPECIAL_AGENTS.get(name or "", "agent")
        spans = log.rollout(number, agent)
        if name is not None:
            ROLLOUT_FAULTS[name](log, spans)
        log.write(spans)
    log.process("agent-dead", "gym/agent", port=8012)
    for number in range(len(at_last)):  # all in its last second
        spans = log.rollout(rollouts + number, "agent-dead")
        ROLLOUT_FAULTS["parent_unfinished"](log, spans)
        log.write(spans)
    log.time += 20 * SECOND
    log.close(folder, dead=("agent-dead",))
    return log


def synthetic(seeds: int, rollouts: int, scores: Scores, folder: Path) -> None:
    """Plant each fault, with each seed."""
    for seed in range(seeds):
        where = folder / f"mixed-{seed}"
        log = mixed(seed, rollouts, where)
        compare_joins(ask(where.name, where, log.expected, scores), log, scores)
        for name in LOG_FAULTS:
            alone(name, seed, scores, folder)


def alone(name: str, seed: int, scores: Scores, folder: Path) -> None:
    """Plant a fault in a log of its own."""
    where = folder / f"{name}-{seed}"
    log = Log(seed)
    LOG_FAULTS[name](log)
    log.close(where)
    ask(where.name, where, log.expected, scores)


def fleet(scores: Scores, folder: Path) -> None:
    """Run the demo's servers, with its faults and with what may become of their logs."""
    for name, options in DEMOS.items():
        demo = folder / f"demo-{name}"
        subprocess.run(
            [sys.executable, "-m", "gymlog.cli", "demo", "--no-show", "--out", str(demo), *options],
            stderr=subprocess.DEVNULL,
            check=True,
        )
        for log in demo.iterdir():
            if log.suffix != ".log":
                log.unlink()
        expected = {
            "bypass": lambda demo: {
                ("split_trace", "egress_bypassed", span["trace_id"])
                for span in records(demo / "model.log", "span")
                if (span["kind"], span["parent_span_id"]) == ("SERVER", None)
            },
            "kill": lambda demo: died(demo / "agent.log"),
            "hang": lambda demo: died(demo / "model.log"),
        }.get(name, lambda _: set())(demo)
        ask(demo.name, demo, expected, scores)
    healthy = folder / "demo-healthy"
    for name, spoil in SPOILED.items():
        spoiled = folder / f"demo-{name}"
        shutil.copytree(healthy, spoiled)
        ask(spoiled.name, spoiled, spoil(spoiled), scores)


def records(log: Path, record_type: str) -> list[Record]:
    """Return the records of a type in a file that is whole."""
    lines = (json.loads(line) for line in log.read_text().splitlines())
    return [record for record in lines if record["record_type"] == record_type]


def died(log: Path) -> Expected:
    """Return what should be found of a process that was killed: all that it had open."""
    ended = {span["span_id"] for span in records(log, "span")}
    open_spans = [span for span in records(log, "span_start") if span["span_id"] not in ended]
    assert open_spans, f"nothing was open in {log}"
    return {("process_died", "process_died", ANY)} | {
        ("unfinished", "process_died", span["trace_id"]) for span in open_spans
    }


def orphaned(folder: Path, gone: set[str], cause: str) -> Expected:
    """Return what should be found when the spans of these ids are gone."""
    spans = [span for log in folder.glob("*.log") for span in records(log, "span")]
    return {("orphan", cause, span["trace_id"]) for span in spans if span["parent_span_id"] in gone}


def without_agent(folder: Path) -> Expected:
    gone = {span["span_id"] for span in records(folder / "agent.log", "span")}
    (folder / "agent.log").unlink()
    return orphaned(folder, gone, "file_missing")


def without_resources(folder: Path) -> Expected:
    (folder / "resources.log").unlink()
    return {("unanswered", "file_missing", ANY)}


def with_silent_resources(folder: Path) -> Expected:
    text = 'INFO:     127.0.0.1:40123 - "POST /verify HTTP/1.1" 200 OK\n'
    (folder / "resources.log").write_text(text * 12)
    return {("unanswered", "not_initialised", ANY)}


def with_torn_line(folder: Path) -> Expected:
    return _without_line(folder, "line_torn", lambda line: f"{line[: len(line) // 2]}\n")


def with_lost_line(folder: Path) -> Expected:
    return _without_line(folder, "lines_lost", lambda _: "")


def _without_line(folder: Path, cause: str, spoil: Callable[[str], str]) -> Expected:
    """Spoil the line of the last span in the agent's log that others stand under."""
    log = folder / "agent.log"
    spans = [span for span in records(log, "span") if span["name"] == "gym.agent.responses"]
    gone = spans[-1]["span_id"]
    expected = orphaned(folder, {gone}, cause)
    lines = log.read_text().splitlines(keepends=True)
    own = f'"span_id":"{gone}","parent'
    log.write_text("".join(spoil(line) if own in line else line for line in lines))
    return expected


_QUICK: Final = ("--rollouts=12", "--latency-scale=0.05")
DEMOS: Final = {
    "healthy": _QUICK,
    "workers": (*_QUICK, "--workers=2", "--span-groups=default"),
    "no-server": (*_QUICK, "--span-groups=http_client,rollout,agent,verify,model_call"),
    "no-client": (*_QUICK, "--span-groups=server,rollout,agent,verify,model_call"),
    "bypass": (*_QUICK, "--fault=bypass"),
    "kill": ("--rollouts=24", "--latency-scale=0.3", "--fault=kill"),
    "hang": ("--rollouts=8", "--fault=hang-model", "--grace-seconds=1"),
}
"""What the demo is run with; closed groups break nothing in gymlog, whose context travels on."""
SPOILED: Final[dict[str, Callable[[Path], Expected]]] = {
    "without-agent": without_agent,
    "without-resources": without_resources,
    "silent-resources": with_silent_resources,
    "torn-line": with_torn_line,
    "lost-line": with_lost_line,
}
"""What becomes of the logs of a healthy run."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")
    parser.add_argument("--seeds", type=int, default=5, help="how many logs of each kind")
    parser.add_argument("--rollouts", type=int, default=300, help="in the logs of many faults")
    parser.add_argument("--fleet", action="store_true", help="real runs of the demo too")
    arguments = parser.parse_args()
    scores = Scores()
    with tempfile.TemporaryDirectory(prefix="bench-doctor-") as folder:
        synthetic(arguments.seeds, arguments.rollouts, scores, Path(folder))
        if arguments.fleet:
            fleet(scores, Path(folder))
    shown = {
        name: {
            "right": score.right,
            "wrong": score.wrong,
            "missed": score.missed,
            "precision": round(score.precision, 3),
            "recall": round(score.recall, 3),
        }
        for name, score in sorted(scores.by_cause.items())
        if score.right + score.wrong + score.missed
    }
    if arguments.json:
        print(json.dumps({"causes": shown, "examples": scores.examples[:50]}, indent=2))
    else:
        print(f"{'finding and cause':45}  right  wrong  missed  precision  recall")
        for name, row in shown.items():
            print(
                f"{name:45}  {row['right']:5}  {row['wrong']:5}  {row['missed']:6}"
                f"  {row['precision']:9.3f}  {row['recall']:6.3f}"
            )
        print(*scores.examples[:20], sep="\n", file=sys.stderr)
    return 0 if scores.is_enough else 1


if __name__ == "__main__":
    sys.exit(main())

"""`reconstruct steps`: how a step went, what ran when, which rollouts held it up, and why."""

from typing import Final

import click

from reconstruct.commands.answers import Question, explained, print_sql
from reconstruct.commands.logs import Logs, align_option, limit_option, on_logs, run_option
from reconstruct.console import Column, Row
from reconstruct.errors import ReconstructError
from reconstruct.render.text import plural

__all__ = ["command"]

_STEPS: Final = [
    Column("step", "STEP", "count"),
    Column("run_id", "RUN"),
    Column("start_time_unix_nano", "START", "instant"),
    Column("duration_ns", "DURATION", "duration"),
    Column("rollout_count", "ROLLOUTS", "count"),
    Column("failed_count", "FAILED", "count"),
    Column("unfinished_count", "UNFINISHED", "count"),
    Column("peak_concurrency", "AT ONCE", "count"),
    Column("duration_p50_ns", "MEDIAN", "duration"),
    Column("duration_p99_ns", "P99", "duration"),
    Column("tail_ns", "TAIL", "duration"),
]
_STEP_FIGURES: Final = (
    *(column.key for column in _STEPS),
    "trace_id",
    "span_id",
    "end_time_unix_nano",
    "finished_count",
    "rollouts_per_second",
    "mean_concurrency",
    "duration_max_ns",
    "ended_p50_ns",
    "ended_p90_ns",
    "ended_p99_ns",
    "ended_all_ns",
    "tail_count",
)
_STRAGGLER_FIGURES: Final = (
    "rank",
    "rollout_id",
    "start_time_unix_nano",
    "end_time_unix_nano",
    "duration_ns",
    "median_ns",
    "excess_ns",
    "is_slow",
    "has_ended",
    "has_failed",
    "began_after_ns",
    "nth_from_last",
    "held_up_ns",
    "cause_aspect",
    "cause_value",
    "cause_chance",
    "name",
    "service_name",
    "instance",
    "blame_ns",
    "usual_blame_ns",
    "trace_id",
    "span_id",
    "occurrence",
)
_CAUSE_FIGURES: Final = (
    "aspect",
    "value",
    "rollouts_with",
    "slow_with",
    "rollouts_without",
    "slow_without",
    "lift",
    "chance",
    "is_cause",
)
_CONCURRENCY_FIGURES: Final = (
    Column("concurrency.counted", "counted"),
    Column("concurrency.service_name", "service_name"),
    Column("concurrency.bucket", "bucket", meaning="Number of the part of the step, from 1."),
    Column(
        "concurrency.start_time_unix_nano",
        "start_time_unix_nano",
        meaning="Start of that part, ns since 1970.",
    ),
    Column(
        "concurrency.end_time_unix_nano",
        "end_time_unix_nano",
        meaning="End of that part, ns since 1970.",
    ),
    Column(
        "concurrency.mean_running",
        "mean_running",
        meaning="How many went on in it on average over its time.",
    ),
    Column("concurrency.max_running", "max_running", meaning="How many went on in it at most."),
)


def _parts(
    key: str, heading: str, meaning: str, relation: str, names: tuple[str, ...]
) -> list[Column]:
    return [
        Column(key, heading, meaning=meaning),
        *(Column(f"{relation}.{name}", name) for name in names),
    ]


@click.command("steps", short_help="Say how a step went, and which rollouts held it up.")
@on_logs
@align_option
@run_option
@click.option(
    "--step", type=click.IntRange(min=1), help="Say more of this step, and not of the longest."
)
@limit_option(10, "step and straggler")
@explained(
    *_parts("steps", "STEPS", "The steps, the longest first.", "steps", _STEP_FIGURES),
    *_parts(
        "stragglers",
        "STRAGGLERS",
        "Of the step that more is said of: the rollouts that held it up, in the order of rank.",
        "stragglers",
        _STRAGGLER_FIGURES,
    ),
    *_parts(
        "causes",
        "CAUSES",
        "Of that step: what its rollouts met, the best explanation of slow ones first.",
        "straggler_causes",
        _CAUSE_FIGURES,
    ),
    Column("concurrency", "CONCURRENCY", meaning="Of the time of that step, in equal parts."),
    *_CONCURRENCY_FIGURES,
)
def command(logs: Logs, run_id: str | None, step: int | None, limit: int) -> None:
    """Say how each step went: how long it took, how many rollouts at a time, how fast, for how long
    the last ones held it up; and of the longest one, what was at work when and which rollouts held
    it up, and why. A step is what one gym.job ran, else the run.

    \b
    Example: which rollouts held up the first step?
      reconstruct steps logs/ --step 1
    """
    from reconstruct.render.steps import report

    with logs.read(keep=("_rollout_sections", "straggler_causes", "stragglers")) as engine:
        all_steps = Question(
            f"""
            SELECT {", ".join(_STEP_FIGURES)}
            FROM steps
            WHERE $run_id::VARCHAR IS NULL OR run_id = $run_id
            ORDER BY duration_ns DESC, run_id, step
            """,
            {"run_id": run_id},
        )
        steps: list[Row] = list(all_steps.ask(engine))
        if step is not None and all(row["step"] != step for row in steps):
            raise ReconstructError(
                f"no step {step} in these logs; there {'is' if len(steps) == 1 else 'are'} "
                f"{plural(len(steps), 'step')}"
            )
        chosen = next((row for row in steps if step in (None, row["step"])), None)
        columns = logs.console.columns
        questions = [] if chosen is None else _questions(chosen, columns)
        if logs.as_sql:
            print_sql(logs, all_steps, *questions)
            return
        answers = [list(question.ask(engine)) for question in questions] or [[], [], []]
    stragglers, causes, concurrency = answers
    shown = steps[:limit] if limit else steps
    if logs.as_json:
        logs.console.json(
            {
                "steps": shown,
                "stragglers": stragglers[:limit] if limit else stragglers,
                "causes": causes,
                "concurrency": concurrency,
            }
        )
    elif chosen is None:
        logs.console.say("no steps: no rollouts and no gym.job in these logs")
    else:
        if len(steps) > 1:
            logs.console.table(_STEPS, shown)
            logs.console.text("\n")
        logs.console.lines(report(chosen, stragglers, causes, concurrency, columns, limit))
    if left := len(steps) - len(shown):
        logs.console.say(f"… {plural(left, 'more step')}; --limit 0 shows all")


def _questions(step: Row, columns: int) -> list[Question]:
    """Ask for the stragglers of a step, for causes, and for what was at work when."""
    from reconstruct.render.steps import buckets

    this: dict[str, object] = {
        "run_id": step["run_id"],
        "step": step["step"],
        "since": step["start_time_unix_nano"],
        "until": step["end_time_unix_nano"],
        "buckets": buckets(columns),
    }
    where = "WHERE run_id IS NOT DISTINCT FROM $run_id::VARCHAR"
    return [
        Question(
            f"""
            SELECT {", ".join(_STRAGGLER_FIGURES)}
            FROM stragglers
            {where} AND step = $step
            ORDER BY rank
            """,
            this,
        ),
        Question(
            f"""
            SELECT {", ".join(_CAUSE_FIGURES)}
            FROM straggler_causes
            {where} AND step = $step
            ORDER BY chance, slow_with DESC, aspect, value
            """,
            this,
        ),
        Question(
            f"""
            SELECT {", ".join(column.heading for column in _CONCURRENCY_FIGURES)}
            FROM concurrency_in($since, $until, $buckets)
            {where}
            ORDER BY counted DESC, service_name, bucket
            """,
            this,
        ),
    ]

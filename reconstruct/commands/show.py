"""`reconstruct show`: one rollout or trace as a waterfall."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconstruct.commands.ids import rollout_run, trace_id_of
from reconstruct.commands.logs import Logs, limit_option, on_logs, run_option
from reconstruct.console import Row
from reconstruct.errors import ReconstructError

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.tree import Span, Trace

__all__ = ["command"]


@click.command("show", short_help="Draw one rollout or trace as a waterfall.")
@on_logs
@click.option("--slowest", is_flag=True, help="Take the longest rollout, or trace; no ID then.")
@run_option
@limit_option(500, "span")
def command(logs: Logs, slowest: bool, run_id: str | None, limit: int) -> None:  # noqa: FBT001  # click passes by keyword
    """Draw one rollout or trace as a waterfall. The first word is its ID: a rollout id, or the
    first digits of a trace id. Several traces of a rollout stand on one time axis.

    \b
    Example: where did the slowest rollout spend its time?
      reconstruct show --slowest logs/
    """
    if not slowest and not logs.paths:
        raise click.UsageError("which one? give a rollout id or the start of a trace id")
    if not slowest and len(logs.paths) == 1 and Path(logs.paths[0]).exists():
        raise click.UsageError(
            f"'{logs.paths[0]}' is a path; put a rollout id or the start of a trace id before it, "
            "or --slowest"
        )
    paths = logs.paths if slowest else logs.paths[1:]
    with logs.read(paths) as engine:
        traces = _slowest(engine, run_id) if slowest else _named(engine, logs.paths[0], run_id)
        if logs.as_json:
            logs.console.json([_facts(span) for trace in traces for span in trace.walk()])
            return
        from reconstruct.render.waterfall import waterfall

        logs.console.lines(waterfall(traces, columns=logs.console.columns, max_rows=limit))


def _slowest(engine: "Engine", run_id: str | None) -> "Sequence[Trace]":
    from reconstruct.tree import rollout_traces, trace_tree

    run = {"run_id": run_id}
    for row in engine.rows(
        """
        SELECT rollout_id, run_id
        FROM rollouts
        WHERE $run_id::VARCHAR IS NULL OR run_id = $run_id
        ORDER BY duration_ns DESC, run_id, rollout_id
        LIMIT 1
        """,
        run,
    ):
        return rollout_traces(engine, row["rollout_id"], row["run_id"])
    for row in engine.rows(
        """
        SELECT trace_id
        FROM traces
        WHERE $run_id::VARCHAR IS NULL OR run_id = $run_id
        ORDER BY duration_ns DESC, trace_id
        LIMIT 1
        """,
        run,
    ):
        return [trace_tree(engine, row["trace_id"])]
    raise ReconstructError(
        f"no span of run '{run_id}' in these logs" if run_id else "no spans in these logs"
    )


def _named(engine: "Engine", wanted: str, run_id: str | None) -> "Sequence[Trace]":
    from reconstruct.tree import rollout_traces, trace_tree

    if run := rollout_run(engine, wanted, run_id):
        return rollout_traces(engine, wanted, run[0])
    return [trace_tree(engine, trace_id_of(engine, wanted, run_id))]


def _facts(span: "Span") -> Row:
    """The span as one flat object: what the tree says about it, then its own columns."""
    names = [name for name in span.__dataclass_fields__ if name != "children"]
    return {name: getattr(span, name) for name in names}

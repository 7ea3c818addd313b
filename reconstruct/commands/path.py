"""`reconstruct path`: whose work decided when a rollout ended, or when all of them did."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands import subjects
from reconstruct.commands.answers import Question, answer, explained
from reconstruct.commands.logs import Logs, align_option, limit_option, on_logs
from reconstruct.commands.path_figures import (
    LENGTH,
    NAME,
    NAMES,
    OFFSET,
    SECTIONS,
    SERVICE,
    SHARE,
    SPANS,
)
from reconstruct.commands.selection import Chosen, Selection, selection_options
from reconstruct.commands.subjects import Subject, is_path
from reconstruct.console import Column, Row
from reconstruct.render.bars import Axis
from reconstruct.render.text import Part, duration, short_names

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["command"]

_BAR_COLUMNS: Final = 24


@dataclass(frozen=True, slots=True)
class _Policy:
    """How to take what the tree alone does not say."""

    outliving: str
    overlap: float

    @property
    def is_usual(self) -> bool:
        return self.outliving == "clip" and not self.overlap

    @property
    def parameters(self) -> dict[str, object]:
        return {"outliving": self.outliving, "overlap": self.overlap}


def _share(_context: click.Context, _option: click.Parameter, text: str) -> float:
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise click.BadParameter(f"'{text}' is no share of a duration; write 1% or 0.01")
    return share


@click.command("path", short_help="Say whose work decided when rollouts ended.")
@on_logs
@align_option
@explained(*dict.fromkeys((*NAMES, *SECTIONS, *SPANS)))
@click.option("--slowest", is_flag=True, help="Take the longest rollout, or trace; no ID then.")
@click.option("--spans", is_flag=True, help="Of one path: its spans, with drag and slack.")
@click.option(
    "--outliving",
    type=click.Choice(["clip", "follow"]),
    default="clip",
    show_default=True,
    help="Work that ends after its parent: cut it there, or follow it to its end.",
)
@click.option(
    "--overlap",
    metavar="SHARE",
    default="0",
    callback=_share,
    help="How far a span may run into the next one and still come before it: a share of their "
    "parent's duration, like 1%.",
)
@selection_options
@limit_option(40, "row")
def command(
    logs: Logs,
    slowest: bool,  # noqa: FBT001  # click passes by keyword
    spans: bool,  # noqa: FBT001  # click passes by keyword
    outliving: str,
    overlap: float,
    selection: Selection,
    limit: int,
) -> None:
    """Say whose work decided when rollouts ended: the critical path. From the end of a rollout
    backwards, the span that ended last was waited for, then the one that ended last before that one
    began; the time between is their parent's own. So all of a rollout's time is someone's, once.

    With an ID before the paths (a rollout id, or the first digits of a trace id) or --slowest, the
    sections of one path in order of time; else all paths added up by name and service.

    \b
    Example: what do the rollouts spend their time on?
      reconstruct path logs/
    """
    policy = _Policy(outliving, overlap)
    wanted = None if slowest else _id_in(logs.paths)
    paths = logs.paths if wanted is None else logs.paths[1:]
    one = slowest or wanted is not None
    if spans and not one:
        raise click.UsageError("--spans is about one path: give an ID or --slowest")
    keep = ("_rollout_sections",) if policy.is_usual and not one else ()
    with logs.read(paths, keep=keep) as engine:
        if not one:
            _show_all(logs, engine, selection, policy, limit)
            return
        if wanted is None:
            subject = subjects.slowest(engine, selection)
        else:
            subject = subjects.named(engine, wanted, selection.run_of(f"'{wanted}' is"))
        if spans:
            _show_spans(logs, engine, subject, policy, limit)
        else:
            _show_sections(logs, engine, subject, policy, limit)


_ROLLOUT_ROWS: Final = """
            SELECT
                path.trace_id,
                path.span_id,
                path.occurrence,
                NULL AS root_span_id,
                path.start_time_unix_nano,
                path.end_time_unix_nano,
                path.duration_ns,
                path.assumed,
                path.node
            FROM rollout_path_of($trace_ids, outliving := $outliving, overlap := $overlap) AS path
            WHERE path.rollout_id = $rollout_id
                AND path.run_id IS NOT DISTINCT FROM $run_id::VARCHAR
"""
_ROLLOUT_MEMBERS: Final = """
        WHERE slack.node IN (
            SELECT node
            FROM _rollout_spans
            WHERE rollout_id = $rollout_id
                AND run_id IS NOT DISTINCT FROM $run_id::VARCHAR
                AND trace_id IN (SELECT unnest($trace_ids))
        )
"""
_TRACE_ROWS: Final = """
            SELECT
                trace_id,
                span_id,
                occurrence,
                root_span_id,
                start_time_unix_nano,
                end_time_unix_nano,
                duration_ns,
                assumed,
                node
            FROM critical_path_of($trace_ids, outliving := $outliving, overlap := $overlap)
"""


def _id_in(words: tuple[str, ...]) -> str | None:
    """Return the first word if it is an id and no path."""
    return words[0] if words and "/" not in words[0] and not is_path(words[0]) else None


def _rows(subject: Subject) -> str:
    """Write the sections of its path, as SQL."""
    return _TRACE_ROWS if subject.rollout_id is None else _ROLLOUT_ROWS


def _parameters(subject: Subject, policy: _Policy) -> dict[str, object]:
    of_rollout: dict[str, object] = (
        {}
        if subject.rollout_id is None
        else {"run_id": subject.run_id, "rollout_id": subject.rollout_id}
    )
    return {
        "trace_ids": list(subject.trace_ids),
        "scope": "trace" if subject.rollout_id is None else "rollout",
        **of_rollout,
        **policy.parameters,
    }


def _show_sections(
    logs: Logs, engine: "Engine", subject: Subject, policy: _Policy, limit: int
) -> None:
    question = Question(
        f"""
        WITH section AS ({_rows(subject)})
        SELECT
            section.start_time_unix_nano - min(section.start_time_unix_nano) OVER () AS offset_ns,
            section.duration_ns,
            section.duration_ns / sum(section.duration_ns) OVER () AS share,
            span.name,
            span.service_name,
            section.assumed,
            section.trace_id,
            section.span_id,
            section.occurrence,
            section.root_span_id,
            section.start_time_unix_nano,
            section.end_time_unix_nano
        FROM section
        LEFT JOIN spans AS span ON span.rowid = section.node
        ORDER BY section.start_time_unix_nano, section.root_span_id
        """,
        _parameters(subject, policy),
    )
    if logs.as_sql or logs.as_json:
        answer(logs, engine, question, SECTIONS, limit=limit, noun="section")
        return
    rows = question.ask(engine)
    names = short_names(row["service_name"] for row in rows)
    end = max((row["offset_ns"] + row["duration_ns"] for row in rows), default=0)
    axis = Axis(0, max(end, 1), _BAR_COLUMNS)
    drawn = [
        {
            **row,
            "service_name": None if row["span_id"] is None else names[row["service_name"]],
            "bar": _bar(axis, row),
            "assumed": "assumed" if row["assumed"] else None,
        }
        for row in rows
    ]
    columns = [OFFSET, LENGTH, SHARE, Column("bar", ""), NAME, SERVICE]
    if any(row["assumed"] for row in rows):
        columns.append(Column("assumed", ""))
    logs.show(columns, drawn, limit=limit, noun="section")
    total = duration(sum(row["duration_ns"] for row in rows))
    logs.console.lines([(Part(f"{total} is all of {subject.words}", "quiet"),)])


def _bar(axis: Axis, row: Row) -> str:
    first, cells = axis.bar(row["offset_ns"], row["offset_ns"] + row["duration_ns"], ())
    return " " * first + cells


def _show_spans(
    logs: Logs, engine: "Engine", subject: Subject, policy: _Policy, limit: int
) -> None:
    question = Question(
        f"""
        WITH
        section AS ({_rows(subject)}),
        blamed AS (
            SELECT
                node,
                sum(duration_ns)::BIGINT AS blame_ns
            FROM section
            WHERE node IS NOT NULL
            GROUP BY node
        )
        SELECT
            coalesce(blamed.blame_ns, 0) AS blame_ns,
            coalesce(blamed.blame_ns, 0) / (SELECT sum(duration_ns) FROM section) AS share,
            slack.drag_ns,
            slack.slack_ns,
            span.duration_ns AS span_ns,
            span.name,
            span.service_name,
            span.trace_id,
            span.span_id,
            span.occurrence
        FROM slack_of(
            $trace_ids,
            scope := $scope,
            outliving := $outliving,
            overlap := $overlap
        ) AS slack
        JOIN spans AS span ON span.rowid = slack.node
        LEFT JOIN blamed ON blamed.node = slack.node
        {_ROLLOUT_MEMBERS if subject.rollout_id else ""}
        ORDER BY blame_ns DESC, slack.drag_ns DESC, slack.slack_ns, span.start_time_unix_nano,
            span.span_id, span.occurrence
        """,
        _parameters(subject, policy),
    )
    answer(logs, engine, question, SPANS, limit=limit, noun="span")


def _show_all(
    logs: Logs, engine: "Engine", selection: Selection, policy: _Policy, limit: int
) -> None:
    chosen = selection.of(engine)
    has_rollouts = engine.rows("SELECT count(*) AS n FROM rollouts")[0]["n"] > 0
    blames = _rollout_blames(chosen, policy) if has_rollouts else _trace_blames(chosen)
    question = Question(
        f"""
        WITH
        blamed AS ({blames}),
        part AS (
            SELECT
                blamed.path,
                span.name,
                span.service_name,
                sum(blamed.blame_ns)::BIGINT AS blame_ns,
                bool_or(blamed.is_assumed) AS is_assumed
            FROM blamed
            LEFT JOIN spans AS span ON span.rowid = blamed.node
            GROUP BY ALL
        )
        SELECT
            sum(blame_ns)::BIGINT AS blame_ns,
            sum(blame_ns) / sum(sum(blame_ns)) OVER () AS share,
            (sum(blame_ns) / (SELECT count(DISTINCT path) FROM part))::BIGINT AS mean_ns,
            quantile_disc(blame_ns, 0.95) AS p95_ns,
            max(blame_ns) AS max_ns,
            count(*) AS path_count,
            count(*) FILTER (is_assumed) AS assumed_count,
            name,
            service_name
        FROM part
        GROUP BY name, service_name
        ORDER BY blame_ns DESC, name, service_name
        """,
        {**chosen.parameters, **policy.parameters},
    )
    answer(logs, engine, question, NAMES, limit=limit, noun="name")


def _rollout_blames(chosen: Chosen, policy: _Policy) -> str:
    sections = (
        "_rollout_sections"
        if policy.is_usual
        else "_rollout_sections_of(NULL, $outliving, $overlap)"
    )
    return f"""
            SELECT
                section.node,
                (rollout.run_id, rollout.rollout_id) AS path,
                sum(section.end_time - section.start_time) AS blame_ns,
                bool_or(section.is_assumed) AS is_assumed
            FROM {sections} AS section
            JOIN rollouts AS rollout
                ON rollout.rollout_id = section.rollout_id
                AND rollout.run_id IS NOT DISTINCT FROM section.run_id
            WHERE {chosen.rollouts}
            GROUP BY ALL
        """


def _trace_blames(chosen: Chosen) -> str:
    return f"""
            SELECT
                section.node,
                section.root AS path,
                sum(section.end_time - section.start_time) AS blame_ns,
                bool_or(section.is_assumed) AS is_assumed
            FROM _sections_of(NULL, 'trace', $outliving, $overlap) AS section
            JOIN spans AS root ON root.rowid = section.root
            JOIN traces AS trace ON trace.trace_id = root.trace_id
            WHERE {chosen.traces}
            GROUP BY ALL
        """

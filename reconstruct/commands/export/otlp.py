"""`reconstruct export otlp`: spans to an OTLP receiver."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, cast
from urllib.parse import unquote

import click

from reconstruct.commands.ids import trace_id_of, unknown
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.console import Row
from reconstruct.errors import DestinationError
from reconstruct.render.text import count, plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.export.otlp.sending import Account

__all__ = ["command"]

_NAMED: Final = 10
"""So many spans that did not arrive are named."""
_ROWS_AT_A_TIME: Final = 2_000
_CHOSEN: Final = """
    FROM spans AS span
    WHERE ($trace_id::VARCHAR IS NULL OR span.trace_id = $trace_id)
        AND (
            $rollout_id::VARCHAR IS NULL
            OR span.rowid IN (SELECT node FROM _rollout_spans WHERE rollout_id = $rollout_id)
        )
"""
_COLUMNS: Final = (
    "trace_id",
    "span_id",
    "parent_span_id",
    "trace_state",
    "flags",
    "name",
    "kind",
    "start_time_unix_nano",
    "end_time_unix_nano",
    "attributes",
    "events",
    "links",
    "status_code",
    "status_message",
    "dropped_attributes_count",
    "dropped_events_count",
    "dropped_links_count",
    "resource",
    "scope_name",
    "scope_version",
)
_PROTOCOL_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


@click.command("otlp", short_help="Send spans to an OTLP receiver.")
@on_logs
@click.option(
    "--endpoint",
    metavar="URL",
    help="http/protobuf: /v1/traces is added to a URL without a path. grpc: http:// is plain, "
    "https:// TLS; host:port is TLS unless --insecure.",
)
@click.option(
    "--protocol",
    type=click.Choice(["grpc", "http/protobuf"]),
    help="Else OTEL_EXPORTER_OTLP_PROTOCOL, else http/protobuf.",
)
@click.option(
    "--headers", metavar="KEY=VALUE,…", help="Sent along, for example an API key; %20 is a space."
)
@click.option("--insecure", is_flag=True, help="grpc to host:port without TLS.")
@click.option("--trace", "trace_id", metavar="ID", help="Only the trace that starts with ID.")
@click.option("--rollout", "rollout_id", metavar="ID", help="Only this rollout.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds for a request, retries included; the export ends when one gets no answer.  "
    "[default: 10]",
)
@click.option(
    "--compression", type=click.Choice(["none", "gzip", "deflate"]), help="Pack what is sent."
)
def command(
    logs: Logs,
    endpoint: str | None,
    protocol: str | None,
    headers: str | None,
    insecure: bool,  # noqa: FBT001  # click passes by keyword
    trace_id: str | None,
    rollout_id: str | None,
    timeout: float | None,
    compression: str | None,
) -> None:
    """Send finished spans to an OTLP receiver (a collector, Jaeger, Tempo …), every field exact.
    Unfinished spans are held back. What is not given is taken from the OTEL_EXPORTER_OTLP_*
    variables.

    \b
    Example: one rollout to a collector on this machine
      reconstruct export otlp logs/ --rollout 1-0 --endpoint http://localhost:4318
    """
    from reconstruct.export.otlp.sending import connect, export

    if insecure and endpoint and endpoint.startswith("https://"):
        raise click.UsageError(f"--insecure and {endpoint} contradict each other; use http://")
    receiver = connect(
        _protocol(protocol),
        endpoint=endpoint,
        headers=_headers(headers),
        insecure=insecure or None,
        timeout=timeout,
        compression=compression,
    )
    try:
        with logs.read() as engine:
            ids = _ids(engine, trace_id, rollout_id)
            unfinished = engine.rows(
                f"SELECT count(*) AS spans {_CHOSEN} AND span.state <> 'finished'", ids
            )
            account = export(receiver, _finished(engine, ids))
    finally:
        receiver.close()
    _report(logs, receiver.destination, account, held_back=unfinished[0]["spans"])


def _protocol(asked: str | None) -> Literal["grpc", "http/protobuf"]:
    asked = asked or next(filter(None, map(os.environ.get, _PROTOCOL_VARIABLES)), "http/protobuf")
    if asked not in {"grpc", "http/protobuf"}:
        raise click.UsageError(f"protocol '{asked}' is not spoken here; use grpc or http/protobuf")
    return cast('Literal["grpc", "http/protobuf"]', asked)


def _headers(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(key.strip() and equals for key, equals, _ in pairs):
        raise click.UsageError("--headers: write KEY=VALUE, several with commas between them")
    return {key.strip().lower(): unquote(value.strip()) for key, _, value in pairs}


def _ids(engine: "Engine", trace_id: str | None, rollout_id: str | None) -> Row:
    """Check the ids that were asked for, and complete the trace's."""
    if rollout_id is not None and not engine.rows(
        "SELECT 1 FROM rollouts WHERE rollout_id = $id LIMIT 1", {"id": rollout_id}
    ):
        raise unknown(engine, rollout_id)
    if trace_id is not None:
        trace_id = trace_id_of(engine, trace_id)
    return {"trace_id": trace_id, "rollout_id": rollout_id}


def _finished(engine: "Engine", ids: Row) -> Iterator[Row]:
    spans = engine.arrow(
        f"""
        SELECT {", ".join(f"span.{column}" for column in _COLUMNS)} {_CHOSEN}
            AND span.state = 'finished'
        ORDER BY span.trace_id, span.start_time_unix_nano, span.span_id, span.occurrence
        """,
        ids,
    )
    for batch in spans.to_batches(max_chunksize=_ROWS_AT_A_TIME):
        yield from batch.to_pylist()


def _report(logs: Logs, destination: str, account: "Account", *, held_back: int) -> None:
    """Say what became of the spans; raise `DestinationError` unless all of them arrived."""
    say = logs.console.say
    for remark in account.remarks:
        say(f"{destination} says: {remark}")
    for unsent in account.unsent[:_NAMED]:
        say(f"not sent: span {unsent.span_id} of trace {unsent.trace_id}: {unsent.words}")
    if len(account.unsent) > _NAMED:
        say(f"… {count(len(account.unsent) - _NAMED)} more refused one by one")
    if logs.as_json:
        logs.console.json(
            {
                "destination": destination,
                "sent": account.sent,
                "not_sent": account.not_sent,
                "requests": account.requests,
                "held_back": held_back,
            }
        )
    say(
        f"exported {plural(account.sent, 'span')} in {plural(account.requests, 'batch', 'batches')}"
        f" to {destination}; held back {count(held_back)} unfinished"
    )
    if account.not_sent:
        why = f": {account.stopped}" if account.stopped else ""
        raise DestinationError(
            f"{count(account.not_sent)} of {plural(account.total, 'span')} did not arrive at "
            f"{destination}{why}"
        )

"""`reconstruct export otlp`: spans, log records and metrics to an OTLP receiver."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.commands.export.chosen import Choice, choice_options
from reconstruct.commands.export.signals import count_unfinished, records_of, signals_option
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.errors import DestinationError
from reconstruct.render.text import count, plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.export.otlp.checkpoint import Checkpoint
    from reconstruct.export.otlp.records import Records
    from reconstruct.export.otlp.sending import Account
    from reconstruct.export.otlp.settings import Options, Protocol, Target

__all__ = ["command"]

_NAMED: Final = 10
"""So many records that did not arrive are named."""


@click.command("otlp", short_help="Send spans, logs and metrics to an OTLP receiver.")
@on_logs
@click.option(
    "--endpoint",
    metavar="URL",
    help="HTTP: a base, to which /v1/traces and so on are added. grpc: http:// is plain, https:// "
    "TLS; host:port is TLS unless --insecure.",
)
@click.option(
    "--protocol",
    type=click.Choice(["grpc", "http/protobuf", "http/json"]),
    help="Else OTEL_EXPORTER_OTLP_PROTOCOL, else http/protobuf.",
)
@click.option(
    "--headers", metavar="KEY=VALUE,…", help="Sent along, for example an API key; %20 is a space."
)
@click.option("--insecure", is_flag=True, help="grpc to host:port without TLS.")
@click.option("--certificate", metavar="FILE", help="PEM file of the CA to trust.")
@click.option("--client-certificate", metavar="FILE", help="PEM file of our own certificate.")
@click.option("--client-key", metavar="FILE", help="PEM file of its key.")
@signals_option("traces,logs,metrics", "What to send")
@choice_options
@click.option(
    "--unfinished",
    type=click.Choice(["hold", "mark"]),
    default="hold",
    show_default=True,
    help="Hold unfinished spans back, or send them as if they ended with the last sign of life, "
    "with the attribute gymlog.unfinished; should they end, they go again.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds for a batch, further tries included; the export ends when one gets no answer. "
    "The variables have milliseconds.  [default: 10]",
)
@click.option(
    "--compression", type=click.Choice(["none", "gzip", "deflate"]), help="Pack what is sent."
)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1_000),
    default=1_000_000,
    show_default=True,
    help="Bytes of a batch before packing.",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Remember there what arrived, a file for each signal. When left out, in .reconstruct "
    "beside the logs, for each destination.",
)
@click.option("--again", is_flag=True, help="Send also what arrived before.")
def command(
    logs: Logs,
    choice: Choice,
    endpoint: str | None,
    protocol: "Protocol | None",
    headers: str | None,
    insecure: bool,  # noqa: FBT001  # click passes by keyword
    certificate: str | None,
    client_certificate: str | None,
    client_key: str | None,
    signals: tuple[str, ...],
    unfinished: str,
    timeout: float | None,
    compression: str | None,
    max_bytes: int,
    checkpoint: Path | None,
    again: bool,  # noqa: FBT001  # click passes by keyword
) -> None:
    """Send finished spans, log records and metrics to an OTLP receiver (a collector, Jaeger,
    Tempo …), every field exact, each record once. What has arrived is remembered, so that the next
    run sends only what is new; after a kill at most one batch goes twice. What is not given is
    taken from the OTEL_EXPORTER_OTLP_* variables.

    \b
    Example: one rollout to a collector on this machine
      reconstruct export otlp logs/ --rollout 1-0 --endpoint http://localhost:4318
    """
    from reconstruct.export.otlp.settings import Options, header_pairs

    if insecure and endpoint and endpoint.startswith("https://"):
        raise click.UsageError(f"--insecure and {endpoint} contradict each other; use http://")
    options = Options(
        endpoint=endpoint,
        protocol=protocol,
        headers=None if headers is None else header_pairs(headers, "--headers"),
        insecure=insecure or None,
        timeout=timeout,
        compression=compression,
        certificate=certificate,
        client_certificate=client_certificate,
        client_key=client_key,
    )
    export = _Export(logs, options, max_bytes=max_bytes, again=again)
    export.run(signals, choice, has_unfinished=unfinished == "mark", checkpoint=checkpoint)


class _Export:
    """One run of the command."""

    def __init__(self, logs: Logs, options: "Options", *, max_bytes: int, again: bool) -> None:
        self._logs = logs
        self._options = options
        self._max_bytes = max_bytes
        self._again = again
        self._done: list[tuple[Target, Records, Account, int]] = []

    def run(
        self,
        signals: tuple[str, ...],
        choice: Choice,
        *,
        has_unfinished: bool,
        checkpoint: Path | None,
    ) -> None:
        """Send the signals one after the other; raise `DestinationError` unless all arrived."""
        from reconstruct.export.otlp.settings import SIGNALS, Target

        targets = [
            Target.of(signal, self._options, os.environ) for signal in SIGNALS if signal in signals
        ]
        folder = self._folder(checkpoint)
        with self._logs.read() as engine:
            chosen = choice.of(engine)
            held_back = 0 if has_unfinished else count_unfinished(engine, chosen)
            try:
                for target in targets:
                    records = records_of(
                        target.signal, chosen, choice, has_unfinished=has_unfinished
                    )
                    if records is not None:
                        self._send(engine, target, records, _path(target, checkpoint, folder))
            except KeyboardInterrupt:
                self._report(held_back)
                self._logs.console.say("interrupted; run it again to send the rest")
                raise
        self._report(held_back)
        self._complain()

    def _folder(self, checkpoint: Path | None) -> Path | None:
        from reconstruct.intake import files
        from reconstruct.store import location

        if checkpoint is not None or self._logs.store is False:
            return None
        if isinstance(self._logs.store, Path):
            return self._logs.store
        folder = location.home(files.search(self._logs.paths or (".",)).files)
        if folder is None:
            self._logs.console.say(
                "no checkpoint: these logs have no folder of their own; --checkpoint FILE "
                "remembers what arrived"
            )
        return folder

    def _send(
        self, engine: "Engine", target: "Target", records: "Records", path: Path | None
    ) -> None:
        from reconstruct.export.otlp.checkpoint import Checkpoint
        from reconstruct.export.otlp.connecting import connect
        from reconstruct.export.otlp.sending import Account, packed, send_all
        from reconstruct.export.otlp.transport import form_of

        account = Account()
        gone = next((done for done in self._done if _is_as_gone(done, target)), None)
        total = records.count(engine)
        self._done.append((target, records, account, total))
        if gone is not None:
            account.stopped = gone[2].stopped if total else ""
            return
        with ExitStack() as stack:
            memory = self._checkpoint(Checkpoint, path, target, stack) if total else None
            transport = connect(target)
            stack.callback(transport.close)
            progress = stack.enter_context(self._logs.console.counting(target.signal, total))
            form = form_of(target)
            items = records.items(
                engine,
                form,
                lambda keys: (
                    [True] * len(keys) if memory is None or self._again else memory.news(keys)
                ),
            )
            send_all(
                packed(items, form, limit=self._max_bytes),
                transport,
                form,
                records,
                timeout=target.timeout,
                memory=memory,
                progress=progress,
                account=account,
            )

    def _checkpoint(
        self,
        kind: "type[Checkpoint]",
        path: Path | None,
        target: "Target",
        stack: ExitStack,
    ) -> "Checkpoint | None":
        if path is None:
            return None
        from reconstruct.store import location

        try:
            if path.parent.name == "sent":
                location.prepare(path.parent.parent)
        except OSError as error:
            self._logs.console.say(f"no checkpoint in {path.parent}: {error.strerror}")
            return None
        return stack.enter_context(kind(path, target))

    def _report(self, held_back: int) -> None:
        say = self._logs.console.say
        for target, records, account, _ in self._done:
            for remark in account.remarks:
                say(f"{target.words} says: {remark}")
            unsent = records.unsent + account.unsent
            for one in unsent[:_NAMED]:
                say(f"not sent: {one.what}: {one.words}")
            if len(unsent) > _NAMED:
                say(f"… {count(len(unsent) - _NAMED)} more refused one by one")
        if self._logs.as_json:
            self._logs.console.json(
                {"signals": [_facts(*done) for done in self._done], "held_back": held_back}
            )
        sent = [
            plural(account.sent, _noun(target))
            for target, _, account, _ in self._done
            if account.sent or target.signal == "traces"
        ]
        batches = sum(account.requests for _, _, account, _ in self._done)
        where = self._done[0][0].words if self._done else "nowhere"
        before = sum(records.known for _, records, _, _ in self._done)
        say(
            f"exported {', '.join(sent) or 'nothing'} in {plural(batches, 'batch', 'batches')} to "
            f"{where}; held back {count(held_back)} unfinished"
            + (f"; {count(before)} had arrived before" if before else "")
        )

    def _complain(self) -> None:
        complaints = []
        for target, records, account, total in self._done:
            if missing := total - records.known - account.sent:
                why = f": {account.stopped}" if account.stopped else ""
                complaints.append(
                    f"{count(missing)} of {plural(total, _noun(target))} did not arrive at "
                    f"{target.words}{why}"
                )
        for words in complaints[:-1]:
            self._logs.console.say(words)
        if complaints:
            raise DestinationError(complaints[-1])


def _is_as_gone(done: Any, target: "Target") -> bool:  # Any: what was done before, see _Export
    """Say whether a signal before went to the same receiver, which gave no answer."""
    from urllib.parse import urlsplit

    before, _, account, _ = done
    same = urlsplit(before.url).netloc == urlsplit(target.url).netloc
    return bool(account.is_unreachable and before.protocol == target.protocol and same)


def _noun(target: "Target") -> str:
    from reconstruct.export.otlp.signals import KINDS

    return KINDS[target.signal].noun


def _path(target: "Target", checkpoint: Path | None, folder: Path | None) -> Path | None:
    from reconstruct.export.otlp.checkpoint import checkpoint_path

    if checkpoint is not None:
        return checkpoint.with_name(f"{checkpoint.name}.{target.signal}")
    return None if folder is None else checkpoint_path(folder, target)


def _facts(
    target: "Target", records: "Records", account: "Account", total: int
) -> dict[str, object]:
    return {
        "signal": target.signal,
        "destination": target.words,
        "sent": account.sent,
        "sent_before": records.known,
        "not_sent": total - records.known - account.sent,
        "requests": account.requests,
        "stopped": account.stopped or None,
    }

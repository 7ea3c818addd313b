"""Logs of a gym of four servers, as large as one likes: what the intake's benchmarks read.

A rollout is one trace of sixteen spans over four services, of the shape and size that `gymlog demo`
writes; every tenth line or so is a web server's text. Nothing is random: the same arguments give
the same bytes.
"""

from collections.abc import Iterator
from pathlib import Path

__all__ = ["SPANS_PER_ROLLOUT", "TEXT_EVERY", "write_gym_logs"]

BEGIN_UNIX_NANO = 1_800_000_000_000_000_000
MS = 1_000_000
TEXT_EVERY = 9
"""A line of text follows so many spans of a service: a tenth of all lines."""
SERVICES = ("environment", "agent", "model", "resources")

TURN = (
    ("agent", "HTTP POST", "CLIENT", "/v1/responses"),
    ("model", "POST /v1/responses", "SERVER", "/v1/responses"),
    ("agent", "HTTP POST", "CLIENT", "/get_weather"),
    ("resources", "POST /get_weather", "SERVER", "/get_weather"),
)
ENDS = (
    ("agent", "HTTP POST", "CLIENT", "/verify"),
    ("resources", "POST /verify", "SERVER", "/verify"),
    ("agent", "POST /run", "SERVER", "/run"),
    ("environment", "gym.rollout", "INTERNAL", "/rollout"),
)
SPANS_PER_ROLLOUT = 3 * len(TURN) + len(ENDS)


def write_gym_logs(folder: Path, spans: int, *, failing_every: int = 0) -> int:
    """Write about `spans` spans into one file per service of `folder`; return how many lines.

    One rollout of `failing_every` fails with all its spans.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rollouts = -(-spans // SPANS_PER_ROLLOUT)
    seq = dict.fromkeys(SERVICES, 0)
    lines = 0
    handles = {service: (folder / f"{service}.log").open("w") for service in SERVICES}
    for service, handle in handles.items():
        handle.write(_process(service, "started", 0, BEGIN_UNIX_NANO))
        seq[service] = 1
        lines += 1
    for rollout in range(rollouts):
        has_failed = bool(failing_every) and rollout % failing_every == 0
        for service, line in _rollout(rollout, seq, "ERROR" if has_failed else "UNSET"):
            handles[service].write(line)
            lines += 1
            if seq[service] % TEXT_EVERY == 0:
                handles[service].write(
                    f'INFO:     127.0.0.1:{40_000 + rollout % 9_999} - "POST /run" 200 OK\n'
                )
                lines += 1
    for service, handle in handles.items():
        end = BEGIN_UNIX_NANO + (rollouts + 100) * 10 * MS
        handle.write(_process(service, "stopped", seq[service], end))
        lines += 1
        handle.close()
    return lines


def _rollout(rollout: int, seq: dict[str, int], status: str) -> Iterator[tuple[str, str]]:
    """Yield the service and the line of each span of one rollout, in the order of their ends."""
    trace_id = f"{(rollout + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"
    begin = BEGIN_UNIX_NANO + rollout * 10 * MS
    spans = TURN * 3 + ENDS
    root, run = len(spans) - 1, len(spans) - 2
    for number, (service, name, kind, path) in enumerate(spans):
        if number == root:
            parent, start, end = None, 0, 800
        elif number == run:
            parent, start, end = root, 1, 790
        elif kind == "CLIENT":
            parent, start, end = run, 10 + 50 * number, 80 + 50 * number
        else:
            parent, start, end = number - 1, 15 + 50 * (number - 1), 70 + 50 * (number - 1)
        yield (
            service,
            (
                f'{{"record_type":"span","seq":{seq[service]},"trace_id":"{trace_id}",'
                f'"span_id":"{_span_id(rollout, number)}",'
                f'"parent_span_id":{"null" if parent is None else _quoted(rollout, parent)},'
                f'"name":"{name}","kind":"{kind}",'
                f'"start_time_unix_nano":{begin + start * MS + rollout % 977},'
                f'"end_time_unix_nano":{begin + end * MS + rollout % 991},"flags":259,'
                f'"status":{{"code":"{status}"}},"attributes":{{"http.request.method":"POST",'
                f'"url.full":"http://127.0.0.1:40695/ng-rollout/{rollout}-0{path}",'
                f'"nemo.gym.rollout.id":"{rollout}-0","http.response.status_code":200,'
                f'"gen_ai.usage.input_tokens":{rollout * 37 % 4096}}},'
                f'"resource":{{"attributes":{{"service.name":"gym/{service}",'
                f'"service.instance.id":"{service}-1"}}}}}}\n'
            ),
        )
        seq[service] += 1


def _span_id(rollout: int, number: int) -> str:
    return f"{(rollout * SPANS_PER_ROLLOUT + number + 1) * 0x9E3779B97F4A7C15 % (1 << 64):016x}"


def _quoted(rollout: int, number: int) -> str:
    return f'"{_span_id(rollout, number)}"'


def _process(service: str, state: str, seq: int, time_unix_nano: int) -> str:
    return (
        f'{{"record_type":"process","seq":{seq},"state":"{state}","schema":1,'
        f'"time_unix_nano":{time_unix_nano},"spans_written":{seq},"records_dropped":0,'
        f'"open_spans":0,"resource":{{"attributes":{{"service.name":"gym/{service}",'
        f'"service.instance.id":"{service}-1","nemo.run.id":"run-1","host.name":"node-1",'
        f'"process.pid":7,"nemo.gym.server.name":"{service}"}}}}}}\n'
    )

"""The same records twice: what is one record in two files counts once, what may be two is two."""

import json
from collections import Counter

from reconstruct.engine import Engine

TRACE = "0af7651916cd43dd8448eb211c80319c"
COUNTED = (
    "spans",
    "traces",
    "rollouts",
    "log_records",
    "metric_points",
    "processes",
    "model_calls",
)


def others():
    """Records that are no spans, of writers that number their lines and of some that do not."""
    for number in range(2):
        yield {"record_type": "log", "seq": number, "time_unix_nano": 5, "body": "b"}
        point = {"time_unix_nano": 7, "value": number}
        metric = {"name": f"m{number}", "data": {"data_points": [point]}}
        yield {"resource_metrics": [{"scope_metrics": [{"metrics": [metric]}]}]}
    yield {"record_type": "metric", "seq": 2, "name": "m", "time_unix_nano": 5}
    yield {"record_type": "process", "seq": 3, "state": "alive", "schema": 1, "time_unix_nano": 5}
    hello = {"message": "hello", "level": "info", "time": "2027-01-15T08:00:00Z"}
    yield hello | {"trace_id": TRACE, "span_id": TRACE[:16]}
    yield hello | {"time": "2027-01-15T08:00:00.000001Z"}
    for _ in range(3):  # as often as the other file has it
        yield {"body": "again", "severity_number": 9, "timestamp": "2027-01-15T08:00:00.123456Z"}
    yield {"model_call_id": "c1", "request": {}, "started_at": 1.8e9, "latency_ms": 2.5}


def fact(number):
    parent = None if number == 1 else f"{number - 1:016x}"
    times = {"start": number, "end": 100 - number, "status": "UNSET", "kind": "SERVER"}
    attributes = {"nemo.gym.rollout.id": "7-0"}
    ids = {"number": number, "span_id": f"{number:016x}", "parent": parent, "name": f"n{number}"}
    return ids | times | {"attributes": attributes}


def test_the_same_file_under_two_names(tmp_path, formats):
    """No relation gets a row more; each further line is `duplicate` where it is a record."""
    records = [write(fact(number)) for number, write in enumerate(formats.values(), 1)]
    records += [formats["zipkin"](fact(8)) | {"shared": True}, *others()]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)

    def counts():
        with Engine.read([str(tmp_path)]) as engine:
            found = {
                name: engine.rows(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in COUNTED
            }
            found["shared"] = engine.rows("SELECT message FROM findings WHERE code = 'shared_id'")
            rows = engine.rows(
                "SELECT class, sum(lines)::INT AS n FROM line_classes GROUP BY class"
            )
            return found, Counter({row["class"]: row["n"] for row in rows})

    (tmp_path / "a.log").write_bytes(data + b"INFO: ready\n{}\n")
    once, classes = counts()
    assert once["spans"] == len(formats) + 1
    assert once["log_records"] == 7
    (tmp_path / "b.log").write_bytes(data)
    twice, both = counts()
    assert twice == once
    assert both == classes + Counter(duplicate=len(records))


def test_two_processes_may_say_the_same(tmp_path):
    """Without a number, a span, or a finer time than a millisecond nothing tells who said it."""
    record = {"message": "ready", "level": "info", "time": "2027-01-15T08:00:00.123Z"}
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(json.dumps(record) + "\n")
    with Engine.read([str(tmp_path)]) as engine:
        assert engine.rows("SELECT count(*) AS n FROM log_records") == [{"n": 2}]

"""Programs and values that broke other tracers: seeded generators, objects without a JSON form."""

import dataclasses
import datetime as dt
import decimal
import json
import uuid

import numpy as np
import pydantic


class TestC01SeededPrograms:
    """A program that seeds the global generators has ids of its own all the same."""

    CODE = """
        import random, numpy
        drawn = []
        for _ in range(2):
            random.seed(10); numpy.random.seed(10)
            with managed_span("job", "root"), managed_span("job", "child"):
                pass
            drawn.append(random.random())
        random.seed(10)
        assert drawn == [random.random()] * 2, "tracing took numbers of the program's"
    """

    def test_two_processes_share_no_id(self, program):
        """4 trace ids and 8 span ids over two processes."""
        found = [span for _ in range(2) for span in program.output(self.CODE)[0].of("span")]
        assert len({span["trace_id"] for span in found}) == 4
        assert len({span["span_id"] for span in found}) == 8
        assert all(int(span["trace_id"], 16) and len(span["trace_id"]) == 32 for span in found)


def test_c19_objects_of_every_kind_leave_the_span_whole(telemetry):
    """One line, known types by value, others as short text, the other attributes intact."""

    class Tensor:
        def __repr__(self):
            raise RuntimeError("no repr")

    class Key(str):
        __slots__ = ()

    @dataclasses.dataclass
    class Point:
        x: int

    class Model(pydantic.BaseModel):
        x: int

    cycle: dict = {}
    cycle["self"] = cycle
    deep: dict = {}
    for _ in range(300):
        deep = {"d": deep}
    with telemetry.tracer.start_as_current_span("request") as span:
        for key, value in {
            "float32": np.float32(0.5),
            "arange": np.arange(3),
            "tensor": Tensor(),
            "naive": dt.datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001 - naive is the case
            "uuid": uuid.UUID(int=1),
            "decimal": decimal.Decimal("1.50"),
            "set": {7},
            "dataclass": Point(1),
            "model": Model(x=1),
            Key("key"): "subclass",
            "cycle": cycle,
            "deep": deep,
            "list": list(range(100_000)),
            "text": "a\nb\u2028c\x00d",
            "before": 1,
        }.items():
            span.set_attribute(key, value)
    line = telemetry.file.writes[-1]
    assert line.count(b"\n") == 1
    assert len(line) <= 65_536
    attributes = json.loads(line)["attributes"]
    assert len(attributes) == 15, list(attributes)
    assert attributes.pop("deep")["d"]["d"]
    assert attributes.pop("list")[:3] == [0, 1, 2]
    assert attributes.pop("dataclass").endswith("Point(x=1)")
    assert attributes == {
        "float32": 0.5,
        "arange": [0, 1, 2],
        "tensor": "<Tensor>",
        "naive": "2026-01-02T03:04:05",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "decimal": "1.50",
        "set": [7],
        "model": "Model(x=1)",
        "key": "subclass",
        "cycle": {"self": "<cycle>"},
        "text": "a\nb\u2028c\x00d",
        "before": 1,
    }


def test_c17_c51_text_is_never_cut_inside_a_character(program):
    """Half an emoji, emoji of several code points, a message of 1 MB: valid UTF-8, in the limit."""
    code = r"""
        family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
        texts = {
            "japanese": "\u65e5\u672c\u8a9e" * 3, "accents": "\u00e9" * 11, "short": "\U0001f600",
            "family": "a" * 9 + family, "half": "ok\udcff", "k\ud800": "caf\ud83d",
            "list": ["\u65e5" * 20, family * 5],
        }
        try:
            with gymlog.span_cm("caf\ud83d", **texts) as span:
                span.add_event("e\udead", {"text": "\u65e5" * 20})
                raise ValueError("\U0001f600\ud83e" * 500_000)
        except ValueError: pass
        spans(1, "next")
    """
    with program(code, OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT="10") as process:
        out, err = process.communicate(timeout=program.SECONDS)
    assert (process.returncode, err) == (0, b"")
    span, _ = program.parse(out.decode("utf-8").encode()).of("span")

    def texts(value):
        if isinstance(value, dict):
            return [text for item in value.items() for text in texts(list(item))]
        if isinstance(value, list):
            return [text for item in value for text in texts(item)]
        return [value] if isinstance(value, str) else []

    attributes = span["attributes"]
    assert attributes["japanese"] == "\u65e5\u672c\u8a9e" * 3
    assert attributes["accents"] == "\u00e9" * 9 + "…"
    assert attributes["short"] == "\U0001f600"
    assert attributes["half"] == "ok\ufffd"
    assert attributes["k\ufffd"] == "caf\ufffd"
    assert span["name"] == "caf\ufffd"
    event, exception = span["events"]
    assert event["name"] == "e\ufffd"
    values = [*attributes.values(), *event["attributes"].values()]
    assert all(len(text) <= 10 for text in texts(values))
    assert len(exception["attributes"]["exception.message"]) <= 512

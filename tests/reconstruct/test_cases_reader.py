"""Logs that broke other readers, each as a kind: glued, cut, compressed, doubled, never ended."""

import bz2
import gzip
import json
import lzma
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from reconstruct.cli import main
from reconstruct.engine import Engine
from reconstruct.export.otlp.encoding import span_message

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Write = Callable[..., Path]
Record = dict[str, Any]

TRACE = "0123456789abcdef" * 2
MS = 1_000_000
NOON = 1_748_779_200_000 * MS  # 2025-06-01T12:00:00Z


def at(milliseconds: int) -> str:
    return datetime.fromtimestamp(1_748_779_200 + milliseconds / 1000, UTC).isoformat()


def span(number: int, parent: int | None = None, **more: Any) -> Record:
    """A record as home-made writers have it; it lasts a millisecond from noon on."""
    return {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_span_id": None if parent is None else f"{parent:016x}",
        "name": f"span {number}",
        "kind": "INTERNAL",
        "start_time": "2025-06-01T12:00:00.000000000Z",
        "end_time": "2025-06-01T12:00:00.001000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {},
        "resource": {"attributes": {"service.name": "gym/model"}},
    } | more


def compact(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def line(number: int, parent: int | None = None, **more: Any) -> bytes:
    return compact(span(number, parent, **more))


def ours(number: int, attributes: Record) -> bytes:
    """The same as `gymlog` writes it."""
    return compact(
        {
            "record_type": "span",
            "seq": number,
            "trace_id": TRACE,
            "span_id": f"{number:016x}",
            "parent_span_id": None,
            "name": f"span {number}",
            "kind": "INTERNAL",
            "start_time_unix_nano": NOON,
            "end_time_unix_nano": NOON + MS,
            "flags": 257,
            "status": {"code": "UNSET"},
            "attributes": attributes,
            "resource": {"attributes": {"service.name": "gym/model", "service.instance.id": "m-1"}},
        }
    )


def traced(
    number: int,
    parent: int | None,
    name: str,
    start: int,
    end: int | None,
    *,
    rollout: str | None = None,
    service: str = "gym/agent",
    **more: Any,
) -> bytes:
    """A span of a service and a rollout; times are ms after noon, no end: it is open."""
    more |= {"start_time": at(start), "end_time": None if end is None else at(end)}
    more["attributes"] = {} if rollout is None else {"nemo.gym.rollout.id": rollout}
    more["resource"] = {"attributes": {"service.name": service}}
    return line(number, parent, name=name, **more)


def joined(*lines: bytes) -> bytes:
    return b"".join(each + b"\n" for each in lines)


class Done(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str


@pytest.fixture
def reconstruct(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Callable[..., Done]:
    """Run a command in the folder with the logs."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = main(list(arguments))
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write files by their names below the current folder; return that folder."""
    monkeypatch.chdir(tmp_path)

    def write_files(files: dict[str, bytes]) -> Path:
        for name, data in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        return tmp_path

    return write_files


def read(*paths: str) -> Engine:
    return Engine.read(paths or ["."])


def names(engine: Engine) -> list[str]:
    rows = engine.rows("SELECT name FROM spans ORDER BY ALL")
    return [row["name"] for row in rows]


def classes(engine: Engine) -> Counter[str]:
    rows = engine.rows("SELECT class, sum(lines)::BIGINT AS n FROM line_classes GROUP BY class")
    return Counter({row["class"]: row["n"] for row in rows})


def rejected(engine: Engine, *of: str) -> list[tuple[str, int, str]]:
    rows = engine.rows("SELECT file, line, class, reason FROM rejected_lines ORDER BY file, line")
    return [(r["class"], r["line"], r["reason"]) for r in rows if not of or r["class"] in of]


def findings(engine: Engine, code: str) -> list[Record]:
    return engine.rows("SELECT * FROM findings WHERE code = $1 ORDER BY message", [code])


class TestC16PrettyConsoleSpans:
    """A span printed over forty lines is one span, whatever its texts look like."""

    @staticmethod
    def printed(number: int, parent: int | None, name: str, kind: str, status: Record) -> bytes:
        return json.dumps(
            {
                "name": name,
                "context": {
                    "trace_id": f"0x{TRACE}",
                    "span_id": f"0x{number:016x}",
                    "trace_state": "[]",
                },
                "kind": f"SpanKind.{kind}",
                "parent_id": None if parent is None else f"0x{parent:016x}",
                "start_time": f"2025-06-01T12:00:00.{number:06}Z",
                "end_time": "2025-06-01T12:00:00.100000Z",
                "status": status,
                "attributes": {"odd": '}\n{ "name": "not a span"', "deep": [{"a": [1]}]},
                "events": [],
                "links": [],
                "resource": {"attributes": {"service.name": "gym/agent"}, "schema_url": ""},
            },
            indent=4,
        ).encode()

    def test_spans_of_both_kinds_make_one_tree(self, write: Write, reconstruct: Any) -> None:
        """Text between, a record of ours below a printed span, an error: no line is damaged."""
        unset = {"status_code": "UNSET"}
        write(
            {
                "console.log": joined(
                    b"INFO:     Uvicorn running on http://127.0.0.1:8001",
                    self.printed(2, 1, "model call", "CLIENT", unset),
                    b'INFO:     127.0.0.1:50000 - "POST /run HTTP/1.1" 200 OK',
                    self.printed(1, None, "POST /run", "SERVER", unset),
                    line(3, 2, name="POST /v1", kind="SERVER", start_time=at(10), end_time=at(20)),
                    self.printed(
                        4,
                        None,
                        "GET /boom",
                        "SERVER",
                        {"status_code": "ERROR", "description": "no"},
                    ),
                )
            }
        )
        with read() as engine:
            tree = engine.rows(
                """
                SELECT name, kind, depth, status_code, status_message, start_time_unix_nano AS start
                FROM spans JOIN span_tree USING (trace_id, span_id) ORDER BY start, name
                """
            )
            assert [tuple(row.values()) for row in tree] == [
                ("POST /run", "SERVER", 0, "UNSET", None, NOON + 1_000),
                ("model call", "CLIENT", 1, "UNSET", None, NOON + 2_000),
                ("GET /boom", "SERVER", 0, "ERROR", "no", NOON + 4_000),
                ("POST /v1", "SERVER", 2, "UNSET", None, NOON + 10 * MS),
            ]
            assert engine.rows("SELECT DISTINCT trace_id FROM spans") == [{"trace_id": TRACE}]
            assert classes(engine)["span"] == 4
            assert classes(engine)["text"] == 2
        assert reconstruct("lines", ".", "--strict").code == 0


class TestC23TornLines:
    """Two writers on one pipe: what is whole is read, nothing is made of two halves."""

    LONG = line(10, name="victim", attributes={"nemo.gym.rollout.id": "x", "pad": "x" * 9_000})
    INNER = line(11, name="intruder", attributes={"nemo.gym.rollout.id": "y"})

    def test_an_overlap_a_killed_writer_and_an_unfinished_tail(
        self, write: Write, reconstruct: Any
    ) -> None:
        """The clean spans, and the two whole ones inside damaged lines; damage has its place."""
        write(
            {
                "torn.log": joined(
                    line(1),
                    self.LONG[:4_096] + self.INNER,
                    self.LONG[4_096:],
                    line(2),
                    self.LONG[:300] + line(12, name="restarted"),
                    line(3),
                )
                + line(13, name="tail")[:120]
            }
        )
        with read() as engine:
            assert names(engine) == ["intruder", "restarted", "span 1", "span 2", "span 3"]
            (intruder,) = engine.rows("SELECT * FROM spans WHERE name = 'intruder'")
            assert intruder["rollout_id"] == "y"
            assert json.loads(intruder["attributes"]) == {"nemo.gym.rollout.id": "y"}
            assert [(name, number) for name, number, _ in rejected(engine)] == [
                ("recovered", 2),
                ("torn", 3),
                ("recovered", 5),
                ("torn", 7),
            ]
        done = reconstruct("lines", ".", "--strict")
        assert done.code == 1
        assert [each.split(": ")[0] for each in done.err.splitlines()[:-1]] == [
            f"torn.log:{number}" for number in (2, 3, 5, 7)
        ]
        assert done.err.splitlines()[-1] == "damaged: 2 recovered, 2 torn"
        assert reconstruct("doctor", ".").code == 1

    @pytest.mark.parametrize("seed", range(5))
    def test_wherever_the_pieces_fall(self, write: Write, seed: int) -> None:
        """Records cut at random and interleaved: each span has its own name and attributes."""
        rng = random.Random(seed)
        data = bytearray()
        for number in range(60):
            record = line(number + 1, attributes={"own": number + 1})
            cut = rng.randrange(len(record)) if rng.random() < 0.5 else len(record)
            data += record[:cut] + (b"\n" if rng.random() < 0.7 else b"")
            data += record[cut:] if rng.random() < 0.5 else b""
        write({"torn.log": bytes(data)})
        with read() as engine:
            rows = engine.rows("SELECT name, span_id, attributes FROM spans")
            assert len(rows) > 10
            for row in rows:
                number = json.loads(row["attributes"])["own"]
                assert (row["name"], row["span_id"]) == (f"span {number}", f"{number:016x}")
            assert classes(engine).total() == data.count(b"\n") + (not data.endswith(b"\n"))


class TestC25ContainerRuntimes:
    """A runtime's time, stream and pieces of 16 KiB are taken off, per stream."""

    PROMPT = "é" * 20_000

    def big(self) -> bytes:
        return line(2, 1, name="model call", attributes={"prompt": self.PROMPT})

    def test_cri(self, write: Write) -> None:
        """Two P parts and an F, cut inside a character, a line of stderr between them."""
        time = b"2025-06-01T12:34:56.123456789Z "
        big = self.big()
        cut = big.index("é".encode()) + 16_001
        assert big[cut - 1 : cut + 1] == "é".encode()
        write(
            {
                "cri.log": joined(
                    time + b"stdout F " + line(1, name="POST /run"),
                    time + b"stdout P " + big[:cut],
                    time + b"stderr F WARNING: slow",
                    time + b"stdout P " + big[cut : cut + 16_384],
                    time + b"stdout F " + big[cut + 16_384 :],
                    time + b"stdout F " + line(3, 2, name="POST /v1"),
                )
            }
        )
        with read() as engine:
            assert names(engine) == ["POST /run", "POST /v1", "model call"]
            (call,) = engine.rows("SELECT * FROM spans WHERE name = 'model call'")
            assert json.loads(call["attributes"]) == {"prompt": self.PROMPT}
            assert call["start_time_unix_nano"] == NOON
            assert classes(engine) == {"span": 3, "joined": 2, "text": 1}
            depths = engine.rows("SELECT depth FROM span_tree ORDER BY depth")
            assert [row["depth"] for row in depths] == [0, 1, 2]

    def test_docker(self, write: Write) -> None:
        """Each piece in an object of its own; the streams' pieces are not mixed."""

        def entry(text: str, stream: str = "stdout") -> bytes:
            return json.dumps(
                {"log": text, "stream": stream, "time": "2025-06-01T12:34:56Z"}
            ).encode()

        big = self.big().decode()
        write(
            {
                "docker-json.log": joined(
                    entry(big[:16_384]),
                    entry("WARN", "stderr"),
                    entry(big[16_384:] + "\n"),
                    entry("ING\n", "stderr"),
                    entry(line(1).decode() + "\n"),
                )
            }
        )
        with read() as engine:
            assert names(engine) == ["model call", "span 1"]
            assert classes(engine) == {"span": 2, "joined": 2, "text": 1}


def test_c27_other_output_on_the_same_line(write: Write, reconstruct: Any) -> None:
    """Bars, prints without a line feed, two records, a remark behind one; JSON that is no span."""
    write(
        {
            "mixed.log": joined(
                line(1),
                b"Rollouts:  45%|####5     | 9/20\rRollouts:  50%|#####     | 10/20\r" + line(2),
                b'INFO:     127.0.0.1:51234 - "POST /run HTTP/1.1" 200 OK',
                b"loading weights..." + line(3),
                line(4) + line(5),
                line(6) + b" <- done",
                b'{"event":"not a span","level":"info"}',
                b"[1,2,3]",
                b"null",
                json.dumps('{"trace_id": 1}').encode(),
                b"",
                b"{}",
                line(7) + b"\r",
            )
        }
    )
    with read() as engine:
        assert names(engine) == [f"span {number}" for number in range(1, 8)]
        assert classes(engine) == {"span": 2, "recovered": 4, "text": 1, "blank": 1, "json": 5}
        assert [number for _, number, _ in rejected(engine, "recovered")] == [2, 4, 5, 6]
        # whole records among other things are noted, not called broken
        assert {row["severity"] for row in findings(engine, "torn_lines")} == {"note"}
    assert reconstruct("doctor", ".").code == 0


class TestC28MalformedLines:
    """One bad line costs itself, not the file, and never becomes a row of nothing."""

    BAD: ClassVar = {
        2: line(12).replace(b"span 12", rb"C:\program"),
        4: line(14)[:200],
        6: line(16)[:-1] + b",}",
        9: repr(span(19)).encode(),
    }
    NAN = line(17, attributes={"score": float("nan")})

    def written(self, write: Write) -> None:
        lines = {number: line(number) for number in (1, 3, 5, 8, 10)} | {7: self.NAN} | self.BAD
        write(
            {
                "logs/bad.log": joined(*(lines[number] for number in sorted(lines))),
                "logs/clean.log": joined(*(line(number) for number in (21, 22, 23))),
            }
        )

    def test_the_rest_is_read_and_each_bad_line_told(self, write: Write) -> None:
        self.written(write)
        with read("logs") as engine:
            found = engine.rows("SELECT name, trace_id, span_id, attributes, file, line FROM spans")
            assert {row["name"] for row in found} == {
                f"span {number}" for number in (1, 3, 5, 17, 8, 10, 21, 22, 23)
            }
            assert len(found) == 9
            assert all(None not in row.values() for row in found)
            (nan,) = [row for row in found if row["name"] == "span 17"]
            assert json.loads(nan["attributes"]) == {"score": "NaN"}
            damaged = rejected(engine)
            assert [(name, number) for name, number, _ in damaged] == [
                ("torn", number) for number in self.BAD
            ]
            assert all(reason.startswith("a record that is not whole: ") for *_, reason in damaged)
            assert classes(engine) == {"span": 9, "torn": 4}

    def test_strict_fails_and_names_them_on_stderr(self, write: Write, reconstruct: Any) -> None:
        """Each once, with file, line and reason; without the switch the exit code is 0."""
        self.written(write)
        assert reconstruct("lines", "logs").code == 0
        assert reconstruct("summary", "logs").code == 0
        done = reconstruct("lines", "logs", "--strict", "--json")
        assert done.code == 1
        *told, last = done.err.splitlines()
        assert [each.split(": ")[:2] for each in told] == [
            [f"logs/bad.log:{number}", "torn"] for number in self.BAD
        ]
        assert "invalid \\escape at character" in told[0]
        assert last == "damaged: 4 torn"
        counts = {(row["file"], row["class"]): row["lines"] for row in json.loads(done.out)}
        assert counts == {
            ("logs/bad.log", "span"): 6,
            ("logs/bad.log", "torn"): 4,
            ("logs/clean.log", "span"): 3,
        }
        assert reconstruct("lines", "logs/clean.log", "--strict").code == 0


@pytest.mark.parametrize("record", [line, ours], ids=["plain", "ours"])
def test_c30_keys_and_types_that_come_late(record: Any, write: Write) -> None:
    """No schema is guessed from the first lines: each value comes back as it was written."""
    odd = [True, 1.5, "n/a", None, {"k": 1}, [1], 2**70]
    lines = [record(number, attributes={"turn": number % 7}) for number in range(1, 20_501)]
    lines += [
        record(20_500 + number, attributes={"turn": turn}) for number, turn in enumerate(odd, 1)
    ]
    lines += [
        record(30_000 + number, attributes={"turn": 1, "reward": 0.5}) for number in range(100)
    ]
    write({"late.log.gz": gzip.compress(joined(*lines), 1)})
    with read() as engine:
        assert engine.rows("SELECT count(*) AS n FROM spans") == [{"n": 20_607}]
        late = engine.rows(
            "SELECT attributes->'reward' AS reward FROM spans WHERE reward IS NOT NULL"
        )
        assert late == [{"reward": "0.5"}] * 100
        found = engine.rows(
            "SELECT attributes->'turn' AS turn FROM spans WHERE line BETWEEN 20501 AND 20507 "
            "ORDER BY line"
        )
        turns = [json.loads(row["turn"]) for row in found]
        assert [(type(turn), turn) for turn in turns] == [(type(turn), turn) for turn in odd]


class TestC32CompressedFiles:
    """Whole, cut, empty and joined archives in one folder: each for itself, none hides another."""

    PACK: ClassVar[dict[str, Callable[[bytes], bytes]]] = {
        "gz": gzip.compress,
        "zst": zstd.compress,
        "xz": lzma.compress,
        "bz2": bz2.compress,
    }

    @pytest.mark.parametrize("suffix", PACK)
    def test_each_file_gives_its_whole_lines(
        self, suffix: str, write: Write, reconstruct: Any
    ) -> None:
        pack = self.PACK[suffix]
        noise = random.Random(3)
        long = [
            line(number, attributes={"noise": noise.randbytes(2_000).hex()})
            for number in range(100, 300)
        ]
        packed = pack(joined(*long))
        write(
            {
                "a.log": joined(line(1), line(2), line(3)),
                f"good.log.{suffix}": pack(joined(line(4), line(5))),
                f"multi.log.{suffix}": pack(joined(line(6))) + pack(joined(line(7))),
                f"empty.log.{suffix}": pack(b""),
                f"zero.log.{suffix}": b"",
                f"cut.log.{suffix}": packed[: len(packed) * 4 // 5],
                f"text.log.{suffix}": joined(line(8)),  # the name says what is not so
            }
        )
        with read() as engine:
            rows = engine.rows("SELECT file, count(*)::BIGINT AS n FROM spans GROUP BY file")
            spans = {row["file"].removesuffix(f".{suffix}"): row["n"] for row in rows}
            whole = spans.pop("cut.log", 0)
            assert spans == {"a.log": 3, "good.log": 2, "multi.log": 2, "text.log": 1}
            if suffix != "bz2":  # its blocks are of 900 kB: none is whole
                assert 0 < whole < 200
            problems = engine.rows("SELECT file, problem FROM _files WHERE problem IS NOT NULL")
            assert [row["file"] for row in problems] == [f"cut.log.{suffix}"]
            assert "ends early" in problems[0]["problem"]
            (told,) = findings(engine, "damaged_file")
            assert told["file"] == f"cut.log.{suffix}"
        done = reconstruct("lines", ".")
        assert done.code == 0
        assert f"cut.log.{suffix}: " in done.err


class TestC34Timestamps:
    """Any way to write an instant is exact to the nanosecond that it says."""

    TIMES: ClassVar[dict[str, tuple[Any, Any, int]]] = {
        "ms fraction": ("2025-06-01T12:00:00.312Z", "2025-06-01T12:00:00.313Z", 312_000_000),
        "us fraction": ("2025-06-01T12:00:00.312345Z", "2025-06-01T12:00:00.313345Z", 312_345_000),
        "ns fraction": (
            "2025-06-01T12:00:00.312000001Z",
            "2025-06-01T12:00:00.313000001Z",
            312_000_001,
        ),
        "no fraction": ("2025-06-01T12:00:00Z", "2025-06-01T12:00:00.001Z", 0),
        "offset": ("2025-06-01T14:00:00.5+02:00", "2025-06-01T14:00:00.501+0200", 500_000_000),
        "offset west": (
            "2025-06-01T06:30:00.5-05:30",
            "2025-06-01T06:30:00.501-05:30",
            500_000_000,
        ),
        "no zone": ("2025-06-01 12:00:00.312345678", "2025-06-01 12:00:00.313345678", 312_345_678),
        "comma": ("2025-06-01 12:00:00,312", "2025-06-01 12:00:00,313", 312_000_000),
        "unix ns": (NOON + 312_000_001, NOON + 313_000_001, 312_000_001),
        "unix ns text": (str(NOON + 312_000_001), str(NOON + 313_000_001), 312_000_001),
        "unix us": (NOON // 1_000 + 312_345, NOON // 1_000 + 313_345, 312_345_000),
        "unix ms": (NOON // MS + 312, NOON // MS + 313, 312_000_000),
        "float s": (1_748_779_200.312, 1_748_779_200.313, 312_000_000),
        "float ms": (1_748_779_200_312.5, 1_748_779_200_313.5, 312_500_000),
    }

    def test_all_forms_sort_and_export_alike(self, write: Write) -> None:
        write(
            {
                "times.log": joined(
                    *(
                        line(number, name=name, start_time=start, end_time=end)
                        for number, (name, (start, end, _)) in enumerate(self.TIMES.items(), 1)
                    )
                )
            }
        )
        with read() as engine:
            rows = engine.rows("SELECT * FROM spans ORDER BY start_time_unix_nano, name")
            expected = {name: NOON + offset for name, (_, _, offset) in self.TIMES.items()}
            assert {row["name"]: row["start_time_unix_nano"] for row in rows} == expected
            assert {row["duration_ns"] for row in rows} == {MS}
            starts = [row["start_time_unix_nano"] for row in rows]
            assert starts == sorted(expected.values())
            for row in rows:
                sent = span_message(row)
                assert sent.start_time_unix_nano == expected[row["name"]]
                assert sent.end_time_unix_nano == expected[row["name"]] + MS

    @pytest.mark.parametrize(
        "start", [5, 12_345.678, "12:00:00", "yesterday", True, -1, 10**30, "2025-13-01T00:00:00Z"]
    )
    def test_what_is_no_instant_is_named_and_never_1970(self, start: Any, write: Write) -> None:
        write({"times.log": joined(line(1, start_time=start), line(2))})
        with read() as engine:
            assert names(engine) == ["span 2"]
            ((name, number, reason),) = rejected(engine)
            assert (name, number) == ("invalid", 1)
            assert "start_time" in reason


def test_c35_bytes_that_are_no_text(write: Write) -> None:
    """A mark, bad bytes, NUL, half a pair, other line separators: six spans, values whole."""
    write(
        {
            "bytes.log": b"\xef\xbb\xbf"
            + joined(
                line(1, attributes={"text": "a??b"}).replace(b"??", b"\xff\xfe"),
                line(2, attributes={"text": "a%b"}).replace(b"%", b"\\u0000"),
                line(3, attributes={"text": "a%b"}).replace(b"%", b"\\ud83d"),
                line(4, attributes={"text": "a\u2028b\x85c"}),
                line(5, attributes={"text": "a\\u2028b"}),
                line(6, name="caf%").replace(b"%", b"\xe9"),
            )
        }
    )
    with read() as engine:
        rows = engine.rows("SELECT * FROM spans ORDER BY line")
        texts = [json.loads(row["attributes"]).get("text") for row in rows]
        assert texts == ["a\ufffd\ufffdb", "a\0b", "a\ufffdb", "a\u2028b\x85c", "a\\u2028b", None]
        assert rows[5]["name"] == "caf\ufffd"
        assert classes(engine) == {"span": 4, "recovered": 2}
        assert [number for _, number, _ in rejected(engine, "recovered")] == [1, 6]
        sent = [span_message(row) for row in rows]
        values = [each.attributes[0].value.string_value for each in sent[:5]]
        assert values == texts[:5]


class TestC38ReadTwice:
    """A record that comes twice counts once; one id with two contents is told."""

    def files(self) -> dict[str, bytes]:
        begun = line(5, 1, name="model call", end_time=None)
        ended = line(5, 1, name="model call", end_time=at(200))
        return {
            "app.1.log": joined(line(1), line(2, 1), line(3, 1), begun),
            "app.log": joined(
                line(3, 1),
                line(2, 1),
                ended,
                line(6, 1, end_time=at(50)),
                line(7, 1, name="clash", end_time=at(40)),
                line(7, 1, name="other work", end_time=at(90)),
            ),
        }

    @staticmethod
    def result(*paths: str) -> tuple[Any, ...]:
        with read(*paths) as engine:
            spans = engine.rows("SELECT name, state, duration_ns FROM spans ORDER BY ALL")
            clashes = engine.rows("SELECT span_id FROM findings WHERE code = 'id_collision'")
            return [tuple(row.values()) for row in spans], clashes, classes(engine)

    def test_doubles_pairs_and_a_clash(self, write: Write) -> None:
        """Ten lines, seven spans: their sums are right."""
        write(self.files())
        spans, clashes, counted = self.result()
        assert spans == [
            ("clash", "finished", 40 * MS),
            ("model call", "finished", 200 * MS),
            ("other work", "finished", 90 * MS),
            ("span 1", "finished", MS),
            ("span 2", "finished", MS),
            ("span 3", "finished", MS),
            ("span 6", "finished", 50 * MS),
        ]
        assert clashes == [{"span_id": f"{7:016x}"}]
        assert counted == {"span": 7, "span_start": 1, "duplicate": 2}

    def test_a_second_reading_changes_nothing_but_duplicates(self, write: Write) -> None:
        """The same files under other names, and the same name given twice."""
        folder = write(self.files())
        once = self.result("app.1.log", "app.log")
        assert self.result("app.log", "app.1.log", "app.log", str(folder / "app.log")) == once
        write({f"copy/{name}": data for name, data in self.files().items()})
        spans, clashes, counted = self.result()
        assert (spans, clashes) == once[:2]
        assert counted == {"span": 7, "span_start": 1, "duplicate": 12}


def test_c40_parents_in_a_circle(write: Write, reconstruct: Any) -> None:
    """It ends, each span is there once, each circle is told once, a normal tree is untouched."""
    write(
        {
            "cycle.log": joined(
                line(1, 1, name="A"),
                line(2, 3, name="B"),
                line(3, 2, name="C"),
                line(4, 3, name="D"),
                line(5, name="rollout"),
                line(6, 5, name="E"),
                line(7, 9, name="X"),
                line(8, 7, name="Y"),
                line(9, 8, name="Z"),
            )
        }
    )
    with read() as engine:
        tree = engine.rows(
            "SELECT name, depth, cycle FROM spans JOIN span_tree USING (trace_id, span_id)"
        )
        assert sorted(row["name"] for row in tree) == [*"ABCDEXYZ", "rollout"]
        assert {row["name"]: row["depth"] for row in tree if not row["cycle"]}["E"] == 1
        told = findings(engine, "cycle")
        assert len(told) == 3
    shown = reconstruct("show", TRACE, ".")
    assert shown.code == 0
    bars = re.findall(r"(\w+) +gym/model +1\.00 ms", shown.out)
    assert sorted(bars) == [*"ABCDEXYZ", "rollout"]


class TestC42UnfinishedSpans:
    """What hangs is what is shown: how long, where, and that averages leave it out."""

    def written(self, write: Write) -> None:
        stuck, killed = {"rollout": "r-stuck"}, {"rollout": "r-killed", "trace_id": TRACE[::-1]}
        write(
            {
                "agent.log": joined(
                    traced(1, None, "rollout", 0, None, **stuck),
                    traced(2, 1, "model call", 1_000, 9_000, kind="CLIENT", **stuck),
                    traced(3, 1, "verify call", 10_000, None, kind="CLIENT", **stuck),
                    traced(4, 99, "model call", 2_000, 3_000, kind="CLIENT", **killed),
                ),
                "resources.log": joined(
                    traced(
                        5,
                        3,
                        "POST /verify",
                        10_005,
                        None,
                        kind="SERVER",
                        service="gym/math",
                        **stuck,
                    ),
                    traced(
                        6,
                        None,
                        "GET /health",
                        310_000,
                        310_001,
                        service="gym/math",
                        trace_id="f" * 32,
                    ),
                ),
            }
        )

    def test_ages_count_to_the_last_time_in_the_logs(self, write: Write) -> None:
        self.written(write)
        with read() as engine:
            rows = engine.rows(
                "SELECT name, open_ns, state FROM spans WHERE end_time_unix_nano IS NULL"
            )
            assert {row["name"]: row["open_ns"] for row in rows} == {
                "rollout": 310_001 * MS,
                "verify call": 300_001 * MS,
                "POST /verify": 299_996 * MS,
            }
            assert {row["state"] for row in rows} == {"open"}
            (stuck,) = findings(engine, "stuck")
            assert stuck["place"] == "POST /verify in gym/math"
            assert "r-stuck" in stuck["message"]
            assert "299.996 s" in stuck["message"]
            (missing,) = findings(engine, "missing_root")
            assert "r-killed" in missing["message"]
            bounds = engine.rows(
                "SELECT min(start_time_unix_nano) AS least, min(duration_ns) AS short FROM spans"
            )
            assert bounds == [{"least": NOON, "short": MS}]

    def test_averages_leave_them_out_and_say_so(self, write: Write, reconstruct: Any) -> None:
        """In SQL by what the columns are, in the summary in words."""
        self.written(write)
        with read() as engine:
            averages = engine.rows(
                "SELECT name, avg(duration_ns) AS mean, count(*) AS n FROM spans GROUP BY name"
            )
            means = {row["name"]: row["mean"] for row in averages}
            assert means == {
                "rollout": None,
                "verify call": None,
                "POST /verify": None,
                "model call": 4_500 * MS,
                "GET /health": MS,
            }
            (comment,) = engine.rows(
                "SELECT comment FROM duckdb_columns() WHERE table_name = 'spans' "
                "AND column_name = 'duration_ns'"
            )
            assert "averages leave those out" in comment["comment"]
        summary = reconstruct("summary", ".").out
        assert "unfinished  3 spans; shares and self times leave them out\n" in summary
        shown = reconstruct("show", "r-stuck", ".").out
        assert shown.count("unfinished") == 5  # a line each, the head and the legend
        assert "open for 5 min 10 s" in shown
        assert reconstruct("doctor", ".").code == 1


class TestC57ContextLost:
    """A rollout over several traces is one picture that says where context was lost."""

    def written(self, write: Write) -> None:
        ray, run, model = {"rollout": "r-ray"}, {"trace_id": "b" * 32}, {"service": "gym/model"}
        other = {"rollout": "r-other"}
        server, client = {"kind": "SERVER"}, {"kind": "CLIENT"}
        answer, health = {"trace_id": "c" * 32}, {"trace_id": "d" * 32}
        write(
            {
                "driver.log": traced(1, None, "dispatch", 0, 6_000, service="gym/driver", **ray),
                "agent.log": joined(
                    traced(2, None, "POST /run", 1_000, 5_000, **ray, **run, **server),
                    traced(3, 2, "model call", 2_000, 3_000, **ray, **run, **client),
                    traced(4, 2, "model call", 3_000, 4_000, **other, **run, **client),
                ),
                "model.log": joined(
                    traced(5, None, "POST /v1", 2_100, 2_900, **ray, **answer, **model, **server),
                    traced(6, None, "GET /health", 0, 1, **health, **model, **server),
                ),
            }
        )

    def test_the_rollout_is_whole_and_its_breaks_are_told(
        self, write: Write, reconstruct: Any
    ) -> None:
        """Four spans of three traces over six seconds; between which services, twice."""
        self.written(write)
        with read() as engine:
            rows = engine.rows("SELECT * FROM rollouts ORDER BY rollout_id")
            counted = [
                (row["rollout_id"], row["trace_count"], row["span_count"], row["duration_ns"])
                for row in rows
            ]
            assert counted == [("r-other", 1, 1, 1_000 * MS), ("r-ray", 3, 4, 6_000 * MS)]
            told = findings(engine, "split_trace")
            assert [row["place"] for row in told] == [
                "gym/driver -> POST /run in gym/agent",
                "gym/agent -> POST /v1 in gym/model",
            ]
            assert all("r-ray" in row["message"] for row in told)
            assert "from gym/driver to gym/agent" in told[0]["hint"]
            assert "from gym/agent to gym/model" in told[1]["hint"]
        shown = reconstruct("show", "r-ray", ".")
        assert shown.code == 0
        assert "6.00 s   3 traces   4 spans   3 services" in shown.out
        assert "r-other" not in shown.out
        assert reconstruct("doctor", ".").code == 1

    def test_no_parent_is_invented(self, write: Write) -> None:
        """Not in the rows, not in the tree, not in what is exported."""
        self.written(write)
        with read() as engine:
            rows = engine.rows("SELECT * FROM spans")
            parents = {row["name"]: row["parent_span_id"] for row in rows}
            assert parents == {
                "dispatch": None,
                "POST /run": None,
                "model call": f"{2:016x}",
                "POST /v1": None,
                "GET /health": None,
            }
            sent = {message.name: message.parent_span_id for message in map(span_message, rows)}
            assert sent == {name: bytes.fromhex(parent or "") for name, parent in parents.items()}
            depths = engine.rows("SELECT count(*) AS n FROM span_tree WHERE depth = 0")
            assert depths == [{"n": 4}]

"""Lines that broke other readers: spans over many of them, torn, shared, malformed."""

import json
import random

import pytest

TRACE = "0123456789abcdef" * 2
MS = 1_000_000
NOON = 1_748_779_200_000 * MS  # 2025-06-01T12:00:00Z


class TestC16PrettyConsoleSpans:
    """A span printed over forty lines is one span, whatever its texts look like."""

    @staticmethod
    def printed(number, parent, name, kind, status):
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

    def test_spans_of_both_kinds_make_one_tree(self, write, reconstruct, line, joined, at, read):
        """Text between, a compact record below a printed span, an error: no line is damaged."""
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
        with read() as found:
            tree = found.rows(
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
            assert found.rows("SELECT DISTINCT trace_id FROM spans") == [{"trace_id": TRACE}]
            assert found.classes()["span"] == 4
            assert found.classes()["text"] == 2
        assert reconstruct("lines", ".", "--strict").code == 0


class TestC23TornLines:
    """Two writers on one pipe: what is whole is read, nothing is made of two halves."""

    def test_an_overlap_a_killed_writer_and_an_unfinished_tail(
        self, write, reconstruct, line, joined, read
    ):
        """The clean spans, and the two whole ones inside damaged lines; damage has its place."""
        long = line(10, name="victim", attributes={"nemo.gym.rollout.id": "x", "pad": "x" * 9_000})
        inner = line(11, name="intruder", attributes={"nemo.gym.rollout.id": "y"})
        write(
            {
                "torn.log": joined(
                    line(1),
                    long[:4_096] + inner,
                    long[4_096:],
                    line(2),
                    long[:300] + line(12, name="restarted"),
                    line(3),
                )
                + line(13, name="tail")[:120]
            }
        )
        with read() as found:
            assert found.names() == ["intruder", "restarted", "span 1", "span 2", "span 3"]
            (intruder,) = found.rows("SELECT * FROM spans WHERE name = 'intruder'")
            assert intruder["rollout_id"] == "y"
            assert json.loads(intruder["attributes"]) == {"nemo.gym.rollout.id": "y"}
            assert [(name, number) for name, number, _ in found.rejected()] == [
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
    def test_wherever_the_pieces_fall(self, write, seed, line, read):
        """Records cut at random and interleaved: each span has its own name and attributes."""
        rng = random.Random(seed)
        data = bytearray()
        for number in range(60):
            record = line(number + 1, attributes={"own": number + 1})
            cut = rng.randrange(len(record)) if rng.random() < 0.5 else len(record)
            data += record[:cut] + (b"\n" if rng.random() < 0.7 else b"")
            data += record[cut:] if rng.random() < 0.5 else b""
        write({"torn.log": bytes(data)})
        with read() as found:
            rows = found.rows("SELECT name, span_id, attributes FROM spans")
            assert len(rows) > 10
            for row in rows:
                number = json.loads(row["attributes"])["own"]
                assert (row["name"], row["span_id"]) == (f"span {number}", f"{number:016x}")
            assert found.classes().total() == data.count(b"\n") + (not data.endswith(b"\n"))


def test_c27_other_output_on_the_same_line(write, reconstruct, line, joined, read):
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
    with read() as found:
        assert found.names() == [f"span {number}" for number in range(1, 8)]
        assert found.classes() == {"span": 2, "recovered": 4, "text": 1, "blank": 1, "json": 5}
        assert [number for _, number, _ in found.rejected("recovered")] == [2, 4, 5, 6]
        # whole records among other things are noted, not called broken
        assert {row["severity"] for row in found.findings("torn_lines")} == {"note"}
    assert reconstruct("doctor", ".").code == 0


class TestC28MalformedLines:
    """One bad line costs itself, not the file, and never becomes a row of nothing."""

    BAD = (2, 4, 6, 9)

    @pytest.fixture(autouse=True)
    def written(self, write, span, line, joined):
        lines = {number: line(number) for number in (1, 3, 5, 8, 10)} | {
            2: line(12).replace(b"span 12", rb"C:\program"),
            4: line(14)[:200],
            6: line(16)[:-1] + b",}",
            7: line(17, attributes={"score": float("nan")}),
            9: repr(span(19)).encode(),
        }
        write(
            {
                "logs/bad.log": joined(*(lines[number] for number in sorted(lines))),
                "logs/clean.log": joined(*(line(number) for number in (21, 22, 23))),
            }
        )

    def test_the_rest_is_read_and_each_bad_line_told(self, read):
        with read("logs") as found:
            rows = found.rows("SELECT name, trace_id, span_id, attributes, file, line FROM spans")
            assert {row["name"] for row in rows} == {
                f"span {number}" for number in (1, 3, 5, 17, 8, 10, 21, 22, 23)
            }
            assert len(rows) == 9
            assert all(None not in row.values() for row in rows)
            (nan,) = [row for row in rows if row["name"] == "span 17"]
            assert json.loads(nan["attributes"]) == {"score": "NaN"}
            damaged = found.rejected()
            assert [(name, number) for name, number, _ in damaged] == [
                ("torn", number) for number in self.BAD
            ]
            assert all(reason.startswith("a record that is not whole: ") for *_, reason in damaged)
            assert found.classes() == {"span": 9, "torn": 4}

    def test_strict_fails_and_names_them_on_stderr(self, reconstruct):
        """Each once, with file, line and reason; without the switch the exit code is 0."""
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

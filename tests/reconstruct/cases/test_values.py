"""Values that broke other readers: types that come late, times of any form, bytes of no text."""

import gzip
import json
from typing import Any, ClassVar

import pytest

from reconstruct.export.otlp.encoding import span_message

MS = 1_000_000
NOON = 1_748_779_200_000 * MS  # 2025-06-01T12:00:00Z


@pytest.mark.parametrize("writer", ["line", "ours"], ids=["plain", "ours"])
def test_c30_keys_and_types_that_come_late(writer, request, write, joined, read):
    """No schema is guessed from the first lines: each value comes back as it was written."""
    record = request.getfixturevalue(writer)
    odd = [True, 1.5, "n/a", None, {"k": 1}, [1], 2**70]
    lines = [record(number, attributes={"turn": number % 7}) for number in range(1, 20_501)]
    lines += [
        record(20_500 + number, attributes={"turn": turn}) for number, turn in enumerate(odd, 1)
    ]
    lines += [
        record(30_000 + number, attributes={"turn": 1, "reward": 0.5}) for number in range(100)
    ]
    write({"late.log.gz": gzip.compress(joined(*lines), 1)})
    with read() as found:
        assert found.rows("SELECT count(*) AS n FROM spans") == [{"n": 20_607}]
        late = found.rows(
            "SELECT attributes->'reward' AS reward FROM spans WHERE reward IS NOT NULL"
        )
        assert late == [{"reward": "0.5"}] * 100
        found = found.rows(
            "SELECT attributes->'turn' AS turn FROM spans WHERE line BETWEEN 20501 AND 20507 "
            "ORDER BY line"
        )
        turns = [json.loads(row["turn"]) for row in found]
        assert [(type(turn), turn) for turn in turns] == [(type(turn), turn) for turn in odd]


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

    def test_all_forms_sort_and_export_alike(self, write, line, joined, read):
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
        with read() as found:
            rows = found.rows("SELECT * FROM spans ORDER BY start_time_unix_nano, name")
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
    def test_what_is_no_instant_is_named_and_never_1970(self, start, write, line, joined, read):
        write({"times.log": joined(line(1, start_time=start), line(2))})
        with read() as found:
            assert found.names() == ["span 2"]
            ((name, number, reason),) = found.rejected()
            assert (name, number) == ("invalid", 1)
            assert "start_time" in reason


def test_c35_bytes_that_are_no_text(write, line, joined, read):
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
    with read() as found:
        rows = found.rows("SELECT * FROM spans ORDER BY line")
        texts = [json.loads(row["attributes"]).get("text") for row in rows]
        assert texts == ["a\ufffd\ufffdb", "a\0b", "a\ufffdb", "a\u2028b\x85c", "a\\u2028b", None]
        assert rows[5]["name"] == "caf\ufffd"
        assert found.classes() == {"span": 4, "recovered": 2}
        assert [number for _, number, _ in found.rejected("recovered")] == [1, 6]
        sent = [span_message(row) for row in rows]
        values = [each.attributes[0].value.string_value for each in sent[:5]]
        assert values == texts[:5]

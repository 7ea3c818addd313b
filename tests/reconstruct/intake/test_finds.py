"""What broke a promise of the reader once, made as small as it went: kept, so that it stays whole.

`tests/bench/fuzz_intake.py` found these, and checks them: lines and bytes add up, and however the
bytes arrive the rows are the same.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from reconstruct.intake import files, reader, tables
from reconstruct.intake.files.compressed import DamagedError, unpacked

ROOT = Path(__file__).parents[3]
TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = '{{"trace_id":"{}","span_id":"{:016x}","name":{},"start_time":1750000000,"attributes":{}}}'


def nested(levels: int) -> str:
    return SPAN.format(TRACE, 1, '"n"', '{"a":' + "[" * levels + "]" * levels + "}")


RECORD = SPAN.format(TRACE, 1, '"n"', "{}")
FINDS = {
    # as deep as one parser takes a value, and not another
    "nested 1,000 deep": nested(1_000),
    "nested 1,020 deep": nested(1_020),
    "a name of lists": SPAN.format(TRACE, 1, "[" * 1_010 + "]" * 1_010, "{}"),
    "nested in a wrapper": json.dumps(
        {"log": nested(1_010) + "\n", "stream": "stdout", "time": ""}
    ),
    "nested, and half a pair": nested(970).replace('"n"', '"\\ud83d"'),
    "nested as a message": '{"message":'
    + "[" * 1_010
    + "]" * 1_010
    + ',"pod":"a","container":"b"}',
    # text that may be a wrapper, told from the lines nearby however they arrive
    "few lines at once": "".join(f"3: {line}\n" for line in ["{", *'   "a",' * 5, RECORD, "x", "x"])
    + f"[1,3]<stdout>:env-1  | {RECORD}\n" * 3,
    "ours among wrapped ones": '{"record_type":"span"}\n' * 90 + f"n1: {RECORD}\n" * 60,
    # a document that is not at its end
    "events so far": '[[{"":[{}]},{"traceEvents":[{"ph":"X","tid":1,"ts":6,"dur":2}\n]}]',
    "a list so far": "[[{}\n]",
    "a log record so far": f'[{{"message":"","trace.id":"{TRACE}",\n"":""}}',
    "a call so far": '[{"model_call_id":"","started_at":750000000,"latency_ms":5\n}',
    # a space that a launcher may have put there
    "one space deep": "".join(
        f"[1,3]<stdout>:{line}\n" for line in ["{", ' "a": {', "  }", " }", "}"]
    ),
}


def test_finds_stay_mended(tmp_path: Path) -> None:
    """All of them in all ways, and some logs more."""
    for number, text in enumerate(FINDS.values()):
        (tmp_path / f"{number:02}.log").write_text(text)
    done = subprocess.run(
        [sys.executable, "tests/bench/fuzz_intake.py", "--logs", "10", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("10 logs, 0 kinds of finds\n", 0), done.stderr


@pytest.mark.parametrize("name", [name for name in FINDS if "nested" in name or "lists" in name])
def test_what_is_nested_too_deeply_is_one_bad_line(name: str, tmp_path: Path) -> None:
    """It is named, and the lines around it are read."""
    (tmp_path / "a.log").write_text(f"{RECORD}\n{FINDS[name]}\n{RECORD}\n")
    found = {table: rows.to_pylist() for table, rows in reader.read(files.find([str(tmp_path)]))}
    assert [row["line"] for row in found[tables.SPAN_LINES]] == [1, 3]
    (bad,) = found[tables.REJECTED_LINES]
    assert bad["line"] == 2
    assert bad["class"] in ("invalid", "torn", "json")


@pytest.mark.parametrize("size", [1, 7, 997, 1 << 14, 1 << 20])
def test_what_damage_costs_is_the_same_however_the_bytes_arrive(size: int) -> None:
    """A flipped bit in an archive: what can be unpacked does not hang on a pipe's mood."""
    data = "".join(f"{RECORD} {number * 7919 % 1000}\n" for number in range(5_000)).encode()
    packed = bytearray(gzip.compress(data))
    packed[len(packed) // 2] ^= 0x55

    def read(chunk: int) -> bytes:
        chunks = (bytes(packed[at : at + chunk]) for at in range(0, len(packed), chunk))
        pieces: list[bytes] = []
        with pytest.raises(DamagedError):
            pieces.extend(unpacked(chunks, "gzip"))
        return b"".join(pieces)

    assert read(size) == read(len(packed))

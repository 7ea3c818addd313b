"""Whatever the bytes, however they come: the same spans, and a ledger that adds up.

Quick by default; `--hypothesis-profile=long` tries forty times as many.
"""

import bz2
import gzip
import json
import lzma
import sys
from collections import Counter
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.intake import tables
from reconstruct.intake.files import lines as file_lines
from reconstruct.intake.wrappers import NAMES, NONE

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PROPERTY = settings(
    max_examples=settings.default.max_examples // 4,  # type: ignore[union-attr]  # always one
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
KINDS = ("INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.text("abc.é", min_size=1, max_size=4)


@st.composite
def facts(draw, number):
    start = draw(st.integers(0, 10**9))
    return {
        "number": number,
        "span_id": f"{draw(st.integers(1, 2**40)) * 1000 + number:016x}",
        "parent": draw(st.none() | st.integers(1, 2**60).map(lambda value: f"{value:016x}")),
        "name": draw(texts.filter(bool)),
        "kind": draw(st.sampled_from(KINDS)),
        "start": start,
        "end": start + draw(st.integers(0, 10**9)),
        "status": draw(st.sampled_from(("UNSET", "OK", "ERROR"))),
        "attributes": draw(st.dictionaries(keys, texts, max_size=3)),
    }


@st.composite
def several(draw):
    return [draw(facts(number)) for number in range(draw(st.integers(1, 8)))]


SIGNS = st.sampled_from(
    [b"\n", b"\r", b"{", b"}", b"[", b"]", b'{"', b'"a": 1,', b"\n", b"\n", b"\0", b"\xff", b"n1: "]
)


@pytest.fixture(scope="module")
def logs(formats):
    """Any bytes, with whole and cut records of all formats among them."""
    records = st.builds(
        lambda fact, write, indent: json.dumps(write(fact), indent=indent).encode(),
        facts(1),
        st.sampled_from([*formats.values()]),
        st.none() | st.just(1),
    ).flatmap(lambda line: st.just(line) | st.integers(0, len(line)).map(lambda at: line[:at]))
    return st.lists(st.binary(max_size=30) | SIGNS | records, max_size=14).map(b"".join)


@pytest.fixture(scope="module")
def clear(clear_wraps):
    """What wraps a line and is known by itself; nothing, and a colour, are as harmless."""
    return clear_wraps | {"nothing": bytes, "colour": lambda line: b"\x1b[1m" + line}


def test_every_wrapper_is_tried(clear_wraps, vague_wraps):
    assert {name.split()[0] for name in clear_wraps | vague_wraps} == {*NAMES} - {NONE}


def is_packed(data):
    return data.startswith((b"\x1f\x8b", b"BZ", b"\xfd7", b"\x28\xb5", b"\x50", b"\x51"))


@PROPERTY
@given(choose=st.data(), wrapper=st.none() | st.sampled_from(NAMES))
def test_any_bytes_in_any_files(read, logs, choose, wrapper):
    """Nothing raises; every line of every file has one class."""
    names = st.sampled_from(["a.log", "b.log", "b.log.1", "c.jsonl", "d"])
    contents = choose.draw(st.dictionaries(names, logs, min_size=1))
    if not any(map(is_packed, contents.values())):
        read(contents, wrapper=wrapper)


@PROPERTY
@given(choose=st.data(), size=st.integers(1, 200))
def test_any_split_into_chunks(read, logs, choose, size):
    """However few bytes arrive at once, all rows of all tables are the same."""
    data = choose.draw(logs)
    if is_packed(data):
        return
    whole = read(data)
    with mock.patch.object(file_lines, "_CHUNK_BYTES", size):
        assert read(data).everything() == whole.everything()


@PROPERTY
@given(spans=several(), choose=st.data(), split=st.randoms(use_true_random=False))
def test_any_order_of_lines_and_files(read, formats, expected, spans, choose, split):
    """Lines in any order in any of several files are the same spans and classes."""
    names = st.sampled_from(sorted(formats))
    lines = [json.dumps(formats[choose.draw(names)](fact)).encode() + b"\n" for fact in spans]
    lines += [b"INFO: ready\n", b"\n", b'{"no":"record"}\n', lines[0][:60] + b"\n"]
    in_order = read(b"".join(lines))
    assert in_order.facts() == expected(spans)
    split.shuffle(lines)
    files = {"z.log": b"", "y.log": b"", "x.log": b""}
    for line in lines:
        files[split.choice(sorted(files))] += line
    shuffled = read(files)
    assert shuffled.facts() == expected(spans)
    assert shuffled.classes == in_order.classes


@PROPERTY
@given(spans=several(), choose=st.data(), is_forced=st.booleans())
def test_any_wrapper_around_any_format(
    read, formats, expected, clear, vague_wraps, spans, choose, is_forced
):
    """Two deep: the same spans, each line a clean one."""
    wraps = clear | vague_wraps
    written_as = choose.draw(st.sampled_from(sorted(formats)))
    outer = choose.draw(st.sampled_from(sorted(wraps)))
    inner = choose.draw(st.sampled_from(sorted(clear)))
    lines = [json.dumps(formats[written_as](fact)).encode() for fact in spans]
    data = b"".join(wraps[outer](clear[inner](line)) + b"\n" for line in lines)
    option = outer.split()[0]
    wrapper = option if is_forced and option in NAMES else None
    result = read(data, wrapper=wrapper)
    assert result.facts() == expected(spans)
    assert result.classes == {"span": len(spans)}


@PROPERTY
@given(spans=several(), choose=st.data(), indent=st.sampled_from([1, 2, 4, "\t"]))
def test_records_over_several_lines(read, formats, expected, clear, spans, choose, indent):
    """Printed with an indent, each line wrapped by itself: the same spans."""
    write = formats[choose.draw(st.sampled_from(sorted({*formats} - {"ours"})))]
    wrap = clear[choose.draw(st.sampled_from(sorted(clear)))]
    lines = [
        wrap(line) + b"\n"
        for fact in spans
        for line in json.dumps(write(fact), indent=indent).encode().split(b"\n")
    ]
    result = read(b"INFO: first\n" + b"".join(lines))
    assert result.facts() == expected(spans)
    assert result.classes == Counter(
        {"span": len(spans), "joined": len(lines) - len(spans), "text": 1}
    )


@PROPERTY
@given(spans=several(), choose=st.data(), indent=st.sampled_from([1, 4, "\t"]))
def test_a_document_pretty_or_compact(read, documents, expected, spans, choose, indent):
    """One JSON value on one line or over many: the same rows but for their places."""

    def rows(result):
        place = dict.fromkeys(("line", "byte_offset", "recovered"))
        return sorted(repr(row | place) for row in result.rows[tables.SPAN_LINES])

    name = choose.draw(st.sampled_from(sorted(documents)))
    document = documents[name](spans)
    compact = read(json.dumps(document, separators=(",", ":")).encode())
    assert len(compact.rows[tables.SPAN_LINES]) == len(spans)
    if name != "trace events":
        assert compact.facts() == expected(spans)
    pretty = json.dumps(document, indent=indent).encode()
    for data in (pretty, b"\xef\xbb\xbf" + pretty + b"\r\n", pretty.replace(b"\n", b"\r\n")):
        result = read(data)
        assert rows(result) == rows(compact)
        assert not result.rows[tables.REJECTED_LINES]


@PROPERTY
@given(
    choose=st.data(),
    pack=st.sampled_from([gzip.compress, zstd.compress, lzma.compress, bz2.compress]),
    cuts=st.lists(st.floats(0, 1), max_size=2),
)
def test_compressed_or_not(read, logs, choose, pack, cuts):
    """Packed whole or in members cut anywhere: all rows of all tables are the same."""
    data = choose.draw(logs)
    if is_packed(data):
        return
    plain = read(data)
    ends = sorted(int(len(data) * cut) for cut in cuts)
    pieces = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
    packed = read(data, stored=b"".join(map(pack, pieces)))
    for row in plain.rows[tables.FILES] + packed.rows[tables.FILES]:
        del row["can_go_on"]  # as only a file can that is not packed
    assert packed.everything() == plain.everything()

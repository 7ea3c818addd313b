"""Values of a document are found wherever its bytes are cut."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.json_scan import Scanner, Value

KEYS = frozenset({"list", "other"})

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.lists(JSON, max_size=5) | st.fixed_dictionaries(
    {}, optional={"a": JSON, "list": st.lists(JSON, max_size=4), "b": JSON, "other": st.lists(JSON)}
)


def scan(data: bytes, cuts: list[int], **options: Any) -> tuple[list[Value], Scanner]:
    scanner = Scanner(KEYS, **options)
    found: list[Value] = []
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in pairwise(bounds):
        found += scanner.feed(data[begin:end])
    return found, scanner


@given(
    document=DOCUMENTS,
    indent=st.sampled_from([None, 0, 2]),
    ascii_=st.booleans(),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    tail=st.binary(max_size=9),
)
def test_any_cut_gives_the_same_values(
    document: Any, indent: int | None, ascii_: bool, cuts: list[int], tail: bytes
) -> None:
    """Elements of the lists that are asked for, the other members whole, and where it ends."""
    data = json.dumps(document, indent=indent, ensure_ascii=ascii_).encode("utf-8", "replace")
    expected: list[tuple[str | None, bool, Any]] = []
    if isinstance(document, list):
        expected = [(None, True, element) for element in document]
    else:
        for key, member in document.items():
            is_list = key in KEYS
            values = member if is_list else [member]
            expected += [(key, is_list, value) for value in values]
    found, scanner = scan(data + tail, cuts)
    assert scanner.problem is None
    assert scanner.end == len(data)
    decoded = json.loads(data)  # what could not be written in UTF-8 became question marks
    assert len(found) == len(expected)
    for value, (key, is_element, _) in zip(found, expected, strict=True):
        assert (value.key, value.is_element) == (key, is_element)
        assert data[value.offset : value.offset + len(value.data)] == value.data
        json.loads(value.data)
    if isinstance(decoded, list):
        assert [json.loads(value.data) for value in found] == decoded


@given(document=DOCUMENTS, data=st.data())
def test_a_document_that_is_cut(document: Any, data: st.DataObject) -> None:
    """All values before the cut, no end, and where the unfinished one begins."""
    whole = json.dumps(document).encode("utf-8", "replace")
    cut = data.draw(st.integers(0, len(whole) - 1))
    found, scanner = scan(whole[:cut], [])
    complete, _ = scan(whole, [])
    assert found == complete[: len(found)]
    assert (scanner.problem, scanner.end) == (None, None)
    later = complete[len(found) :]
    if scanner.begun is not None and later:
        assert scanner.begun <= later[0].offset


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"x", "[ or { is missing at byte 0"),
        (b"[1 2]", ", or ] is missing at byte 3"),
        (b'[{"a":[1}]', "brackets that do not match"),
        (b"[}", "a value that is none"),
        (b"[INFO] text", "a value that is none"),
        (b"[2025-01-01 12:00:00]", ", or ] is missing"),
        (b"{a:1}", "} is missing"),
        (b'{"a" 1}', ": is missing"),
        (b'{"a":1 "b":2}', ", or } is missing"),
        (b'["a\n"]', "a string with a line feed in it"),
        (b'[{"a":"torn\n{"b":1}', "a string with a line feed in it"),
        (b'["\\\n"]', "a string with a line feed in it"),
    ],
)
def test_what_is_no_document(data: bytes, problem: str) -> None:
    """The problem says what, at which byte; however it is cut."""
    for cuts in ([], list(range(len(data)))):
        _, scanner = scan(data, cuts)
        assert scanner.problem is not None
        assert scanner.problem.startswith(problem)


def test_a_value_has_a_limit() -> None:
    """Memory holds no more; smaller values are found however many there are."""
    found, scanner = scan(b'["' + b"x" * 50 + b'", "' + b"y" * 500, [100], max_value_bytes=200)
    assert len(found) == 1
    assert scanner.problem == "a value is longer than 200 bytes"


def test_only_known_lists_are_taken_apart() -> None:
    """`has_list` tells that there was one."""
    found, scanner = scan(b'{"data": [1], "list": []}', [])
    assert [value.data for value in found] == [b"[1]"]
    assert scanner.has_list
    assert not scan(b'{"data": [1]}', [])[1].has_list

"""Which wrapper a line is in: any of them, nested, mixed, forced; whatever the bytes."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.errors import UsageError
from reconstruct.intake.wrappers import NAMES, NONE, checked_name
from reconstruct.intake.wrappers.unwrapper import MAX_DEPTH, without_escapes

QUICK = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


TOLD_BY_WRAPPERS = (
    "byte_offset",
    "host_name",
    "instance",
    "process_pid",
    "server_name",
    "service_name",  # the server's, where the record names none
)

text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\0\ufeff"), max_size=30
).map(str.encode)
kinds_of_lines = st.lists(st.sampled_from(["ours", "bare", "pretty"]) | text, max_size=12)


def logs_of(payloads, kinds):
    """Lines of records and of other things; each record has a number of its own."""
    lines: list[bytes] = []
    for number, kind in enumerate(kinds, 1):
        if kind == "ours":
            lines.append(payloads.ours(f"span {number}", number))
        elif kind == "bare":
            lines.append(payloads.bare('x { "trace_id": ünd mehr', number))
        elif kind == "pretty":
            lines.extend(payloads.pretty(f"span {number}", number))
        else:
            lines.append(kind)
    return lines


def told(result):
    """The spans' rows without what only a wrapper tells."""
    rows = [{k: v for k, v in row.items() if k not in TOLD_BY_WRAPPERS} for row in result.spans]
    return sorted(rows, key=lambda row: row["line"])


def data_of(wrap, lines):
    return b"".join(wrap(line) + b"\n" for line in lines)


@QUICK
@given(kinds=kinds_of_lines, data=st.data())
def test_layers_of_wrappers_change_nothing(read, payloads, clear_wraps, kinds, data):
    """The same payloads in any wrappers: the same spans on the same lines, the same classes."""
    names = data.draw(st.lists(st.sampled_from(sorted(clear_wraps)), min_size=1, max_size=3))
    lines = logs_of(payloads, kinds)
    plain = read(data_of(bytes, lines))

    def wrap(line):
        for name in names:
            line = clear_wraps[name](line)
        return line

    wrapped = read(data_of(wrap, lines))
    assert told(wrapped) == told(plain)
    assert wrapped.classes == plain.classes


@QUICK
@given(kinds=kinds_of_lines, data=st.data())
def test_a_vague_wrapper_outside_of_another_changes_nothing(
    read, payloads, clear_wraps, vague_wraps, kinds, data
):
    """It is believed: all lines have it, and a record follows."""
    outer = vague_wraps[data.draw(st.sampled_from(sorted(vague_wraps)))]
    inner = clear_wraps[data.draw(st.sampled_from(sorted(clear_wraps)))]
    lines = logs_of(payloads, ["ours", *kinds])
    plain = read(data_of(bytes, lines))
    wrapped = read(data_of(lambda line: outer(inner(line)), lines))
    assert told(wrapped) == told(plain)
    assert wrapped.classes == plain.classes


@QUICK
@given(data=st.data())
def test_lines_in_different_wrappers_follow_each_other(read, payloads, clear_wraps, data):
    """A file is what its lines say, each for itself."""
    wraps = {"none": bytes} | clear_wraps
    names = data.draw(st.lists(st.sampled_from([*wraps]), min_size=1, max_size=12))
    lines = logs_of(payloads, ["ours"] * len(names))
    pairs = zip(names, lines, strict=True)
    result = read(b"".join(wraps[name](line) + b"\n" for name, line in pairs))
    assert told(result) == told(read(data_of(bytes, lines)))
    assert result.classes == {"span": len(names)}


def test_a_forced_wrapper_is_the_only_outermost_one(
    read, payloads, clear_wraps, vague_wraps, wrap_name
):
    """Its own lines are clean; a record in another one is found among other things."""
    option = wrap_name.split()[0]
    outer, inner = (clear_wraps | vague_wraps)[wrap_name], clear_wraps["torchrun"]
    lines = [payloads.ours("one"), payloads.ours("two", 2)]
    wrapped = data_of(lambda line: outer(inner(line)), lines)
    result = read(wrapped, wrapper=option)
    assert result.classes == {"span": 2}
    assert result.wrapper == f"{option} > torchrun"
    other = "honcho" if option != "honcho" else "compose"
    assert read(wrapped, wrapper=other).wrapper is None


def test_a_forced_vague_wrapper_needs_no_evidence(read, payloads, vague_wraps, vague_name):
    """One line among many is enough."""
    lines = [b"some text"] * 9 + [vague_wraps[vague_name](payloads.ours("one"))]
    result = read(b"\n".join(lines), wrapper=vague_name.split()[0])
    assert result.classes["span"] == 1


def test_none_takes_nothing_off(read, payloads):
    """What stands before a record is other text then."""
    result = read(b"(agent) " + payloads.ours("one") + b"\n" + payloads.ours("two", 2), "none")
    assert result.names == ["one", "two"]
    assert result.classes == {"recovered": 1, "span": 1}
    assert result.wrapper is None


def test_a_wrong_name_lists_the_right_ones():
    """And the one that is nearest."""
    with pytest.raises(UsageError, match=r"no wrapper 'dokcer'; did you mean 'docker'\?.*cri.*"):
        checked_name("dokcer")
    assert all(checked_name(name) == name for name in NAMES)


def test_the_readme_has_every_wrapper():
    """One row of its table each, with the name that the option takes."""
    readme = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| `--wrapper` |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted([*named, NONE]) == sorted(NAMES)


def test_more_layers_than_are_taken_off(read, payloads):
    """The record is still found, as one among other things."""
    layers = b"2025-06-15T15:06:40Z " * (MAX_DEPTH + 1)
    result = read(layers + payloads.ours("one"))
    assert result.names == ["one"]
    assert result.classes == {"recovered": 1}


@QUICK
@given(
    cuts=st.lists(st.integers(0, 600), max_size=6),
    order=st.lists(st.booleans(), max_size=14),
    is_docker=st.booleans(),
)
def test_pieces_of_two_streams_interleave_anyhow(read, payloads, cuts, order, is_docker):
    """Cut anywhere, mixed anyhow: two whole records."""
    queues = []
    for stream, number in (("stdout", 1), ("stderr", 2)):
        whole = payloads.ours(f"{stream} é", number)
        if is_docker:  # which cuts text, as its objects hold it
            parts = split(whole.decode(), cuts)
            last = len(parts) - 1
            pieces = [
                json.dumps({"log": part + "\n" * (n == last), "stream": stream, "time": "t"})
                for n, part in enumerate(parts)
            ]
            queues.append([piece.encode() for piece in pieces])
        else:
            pieces = split(whole, cuts)
            tags = [b"P"] * (len(pieces) - 1) + [b"F"]
            head = b"2025-06-15T15:06:40.05Z " + stream.encode()
            queues.append([b" ".join((head, *both)) for both in zip(tags, pieces, strict=True)])
    total = sum(map(len, queues))
    lines = [queues[is_second].pop(0) for is_second in order if queues[is_second]]
    lines += [*queues[0], *queues[1]]
    result = read(b"\n".join(lines))
    assert sorted(result.names) == ["stderr é", "stdout é"]
    assert result.classes == Counter(span=2, joined=total - 2)


def split(whole, cuts):
    places = sorted({cut for cut in cuts if 0 < cut < len(whole)})
    return [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]


ANY = st.sampled_from(
    [
        b"\n",
        b"\n",
        b"{",
        b"}",
        b'{"log":"',
        b'","stream":"stdout","time":"t"}',
        b'{"MESSAGE":[1,2],"__CURSOR":"x"}',
        b'{"MESSAGE":null,"__CURSOR":"x"}',
        b"2025-06-15T15:06:40.05Z stdout P ",
        b"2025-06-15T15:06:40.05Z stderr F ",
        b"(a pid=7) ",
        b" [repeated 3x across cluster]",
        b"<14>1 - - - - - - ",
        b"#012",
        b"3: ",
        b"a\t",
        b"\x1b[36m",
        b"\xff",
        b'"trace_id":',
    ]
) | st.binary(max_size=12)


@QUICK
@given(pieces=st.lists(ANY, max_size=25), wrapper=st.sampled_from([None, *NAMES]))
def test_every_line_has_one_class_whatever_the_bytes(read, pieces, wrapper):
    """Nothing raises; the classes add up, which `read` checks."""
    data = b"".join(pieces)
    if not data.startswith((b"\x1f\x8b", b"BZ", b"\x28\xb5", b"\xfd7")):
        result = read(data, wrapper)
        assert sum(result.classes.values()) == data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


@pytest.mark.parametrize(
    "flood",
    [
        b"(",
        b"(a",
        b"(a) ",
        b"[a1",
        b"[1,",
        b"1",
        b"a",
        b"a ",
        b"\x1b[0",
        b"\x1b]",
        b"<14>1 a b c d e [",
        b'<14>1 a b c d e [x="',
        b"<14>Jun 15 15:06:40 n1 a: {#012",
        b"#012",
        b"@",
        b"env | ",
        b"\t",
        b'{"log":',
        b" [repeated 2x across cluster]",
    ],
)
def test_a_flood_takes_linear_time(read, flood):
    """A line of nothing but the beginning of a prefix."""
    result = read(flood * (200_000 // len(flood)))
    assert sum(result.classes.values()) == 1


def test_escapes():
    """Colours, movements, titles; a lone escape stays."""
    line = b"\x1b[1;36ma\x1b[0m\x1b[2K\x1b]0;title\x07b\x1b]8;;x\x1b\\c\x1b7d\x1b"
    assert without_escapes(line) == b"abcd\x1b"

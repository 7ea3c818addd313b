"""srun, mpirun, torchrun, pdsh, parallel: prefixes, glued or not, and what only looks like them."""

import json

import pytest

TRACE = "0123456789abcdef" * 2


def wrap(prefix, lines):
    return b"".join(prefix + line + b"\n" for line in lines)


@pytest.mark.parametrize(
    ("prefix", "wrapper"),
    [
        (b"3: ", "srun"),
        (b" 3: ", "srun"),
        (b"003:", "srun"),
        (b"1+3: ", "srun"),
        (b"[1,3]<stdout>:", "mpirun"),
        (b"[1,3]<stdout>: ", "mpirun"),
        (b"[prterun-n1-77@1,3]<stdout>: ", "mpirun"),
        (b"Sun Jun 15 15:06:40 2025[1,3]<stdout>:", "mpirun"),
        (b"[default3]:", "torchrun"),
        (b"[rank3]: ", "torchrun"),
        (b"[trainer12]:", "torchrun"),
        (b"n1: ", "pdsh"),
        (b"node-17.cluster.example: ", "pdsh"),
        (b"env-3\t", "parallel"),
        (b"--seed 3 'a b'\t", "parallel"),
    ],
)
def test_prefixes(read, payloads, prefix, wrapper):
    """Records on one line and over several, text, blank lines."""
    lines = [payloads.bare("one"), b"INFO: hello", b"", *payloads.pretty("two", 2)]
    result = read(wrap(prefix, lines))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "blank": 1, "joined": len(lines) - 4}
    assert result.wrapper == wrapper


def test_pdsh_names_the_host(read, payloads, origin_of):
    """What stands before the colon is the node."""
    assert origin_of(read(b"n1: " + payloads.bare("one")).spans[0]) == (None, "n1", None)


def test_ranks_print_over_several_lines_at_once(read, payloads):
    """Lines are put together per rank."""
    first, second = payloads.pretty("first"), payloads.pretty("second", 2)
    pairs = zip(first, second, strict=True)
    result = read(b"".join(b"0: " + one + b"\n1: " + other + b"\n" for one, other in pairs))
    assert sorted(result.names) == ["first", "second"]
    assert result.classes == {"span": 2, "joined": 2 * len(first) - 2}


@pytest.mark.parametrize("before", [b"loading: ", b"42: ", b"a\t", b"the end "])
def test_text_before_a_record_is_no_launcher(read, payloads, before):
    """Where other lines have no such prefix, the record stands among other things."""
    data = wrap(b"", [payloads.bare("one"), b"plain text, it seems", payloads.bare("two", 2)])
    result = read(data + before + payloads.bare("three", 3))
    assert result.names == ["one", "two", "three"]
    assert result.classes == {"span": 2, "text": 1, "recovered": 1}
    assert result.spans[2]["host_name"] is None


@pytest.mark.parametrize("before", [b"loading: ", b"the end "])
def test_text_before_a_record_among_ours(read, payloads, before):
    """Whatever way our own lines are read, they are lines nearby."""
    lines = [payloads.ours(str(number), number) for number in range(1, 20)]
    lines.insert(9, before + payloads.ours("odd", 99))
    result = read(wrap(b"", lines))
    assert result.classes == {"span": 19, "recovered": 1}


@pytest.mark.parametrize("level", [b"INFO", b"warning", b"SEVERE"])
def test_a_level_is_no_host(read, payloads, level):
    """A logger that writes its level before each record is no pdsh."""
    result = read(wrap(level + b": ", [payloads.bare("one"), payloads.bare("two", 2)]))
    assert result.classes == {"recovered": 2}
    assert result.wrapper is None


def test_a_prefix_that_begins_late_is_found(read, payloads):
    """What is nearby decides, not the head of the file."""
    lines = [b"n1: " + payloads.bare(str(number), number) for number in range(1, 300)]
    result = read(wrap(b"", [b"a preamble without any prefix"] * 600 + lines))
    assert len(result.names) == 299
    assert result.classes["span"] > 200
    assert result.classes["span"] + result.classes["recovered"] == 299


@pytest.mark.parametrize("indent", [1, 2, 4])
@pytest.mark.parametrize("prefix", [b"[1,3]<stdout>:", b"[default3]:", b"3:", b"n1:"])
@pytest.mark.parametrize("space", [b"", b" "])
def test_a_space_behind_the_prefix_or_none(read, prefix, space, indent):
    """Some versions write one: a record over several lines keeps its own indentation."""
    record = {
        "trace_id": TRACE,
        "span_id": "0" * 15 + "1",
        "name": "x",
        "start_time": 1_750_000_000,
    }
    lines = (
        json.dumps(record | {"attributes": {"a": {"b": [1]}}}, indent=indent).encode().split(b"\n")
    )
    result = read(b"".join(prefix + space + line + b"\n" for line in lines))
    assert result.names == ["x"]
    assert result.classes == {"span_start": 1, "joined": len(lines) - 1}
    assert json.loads(result.spans[0]["attributes"]) == {"a": {"b": [1]}}


@pytest.mark.parametrize("end", ["[{}]", "[[{}]]"])
def test_a_list_behind_a_vague_prefix(read, end):
    """It begins a record as an object does."""
    span = f'{{"traceId":"{TRACE}","id":"1","timestamp":5,"duration":1}}'
    result = read(f"n1: {end.format(span)}\n".encode() * 2)
    assert result.classes == {"span": 2}

"""A Ray driver's output: prefixes, colours, and the lines that its de-duplication left out."""

import pytest

REPEATED = " [repeated 4x across cluster]"
ADVICE = (
    " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see "
    "https://docs.ray.io/en/master/configure-logging.html#log-deduplication for more options.)"
)


@pytest.mark.parametrize(
    ("prefix", "origin"),
    [
        (b"(EnvActor pid=77) ", ("EnvActor", None, 77)),
        (b"(EnvActor pid=77, ip=10.0.0.3) ", ("EnvActor", "10.0.0.3", 77)),
        (b"\x1b[36m(EnvActor pid=77, ip=10.0.0.3)\x1b[0m ", ("EnvActor", "10.0.0.3", 77)),
        (b"(Env(rank=3) pid=77) ", ("Env(rank=3)", None, 77)),
        (b"(pid=77) ", (None, None, 77)),
        (b"(agent) (EnvActor pid=77) ", ("EnvActor", None, 77)),
        (b"(EnvActor pid=77) (judge) ", ("judge", None, 77)),
    ],
)
def test_prefixes(read, payloads, origin_of, prefix, origin):
    """Name, node and pid; the name nearest to the record is its server's."""
    lines = [payloads.bare("one"), b"hello", *payloads.pretty("two", 2)]
    result = read(b"".join(prefix + line + b"\n" for line in lines))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "joined": len(lines) - 3}
    assert origin_of(result.spans[0]) == origin
    assert "ray" in result.wrapper


def test_two_workers_of_one_name_are_two_instances(read, payloads):
    """Records that do not say who wrote them are told apart by the pid."""
    result = read(
        b"(Env pid=7) " + payloads.bare("x") + b"\n(Env pid=8) " + payloads.bare("x", 2) + b"\n"
    )
    assert len({row["instance"] for row in result.spans}) == 2


def test_a_record_that_names_its_process_is_left_alone(read, payloads):
    """Ray's pid is that of its worker, not of a server that the worker started."""
    (row,) = read(b"(Env pid=7, ip=10.0.0.3) " + payloads.ours("x")).spans
    (plain,) = read(payloads.ours("x")).spans
    assert row | {"server_name": None} == plain


@pytest.mark.parametrize("advice", ["", ADVICE], ids=["plain", "with advice"])
@pytest.mark.parametrize("color", ["", "\x1b[32m"], ids=["plain", "colour"])
def test_lines_that_ray_left_out_are_counted(read, payloads, advice, color):
    """N were held back and one of them printed; the record before the marker is read."""
    marker = f"{color}{REPEATED}{advice}{color and chr(27) + '[0m'}"
    result = read(b"(Env pid=7) " + payloads.bare("boom") + marker.encode() + b"\n")
    assert result.names == ["boom"]
    assert result.classes == {"recovered": 1}
    assert [row["lost_lines"] for row in result.rejected] == [3]
    assert "3 lines like it were left out" in result.reason(1)


def test_a_marker_behind_text_costs_no_record(read):
    """The lines that are missing were text too."""
    result = read(b"(Env pid=7) loading weights" + REPEATED.encode())
    assert result.classes == {"text": 1}
    assert result.rejected[0]["lost_lines"] == 3


def test_a_marker_inside_a_text_is_the_texts(read, payloads):
    """Only behind everything else is it Ray's."""
    result = read(b"(Env pid=7) " + payloads.bare("x" + REPEATED))
    assert result.names == ["x" + REPEATED]
    assert result.classes == {"span": 1}


def test_a_line_that_ray_left_out_of_a_record_over_several(read, payloads):
    """What is left is no record; the count of what is missing stands beside it."""
    lines = payloads.pretty("boom")
    del lines[2]
    lines[1] += REPEATED.encode()
    result = read(b"".join(b"(Env pid=7) " + line + b"\n" for line in lines))
    assert result.names == []
    assert result.classes == {"json": 1, "joined": len(lines) - 1}
    assert [row["lost_lines"] for row in result.rejected] == [3]

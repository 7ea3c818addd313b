"""A time before each line, and docker's times inside long ones."""

import pytest

STAMP = b"2025-06-15T15:06:40.050123456Z "


@pytest.mark.parametrize(
    "stamp",
    [
        STAMP,
        b"2025-06-15T15:06:40+02:00 ",
        b"2025-06-15_15:06:40.05012 ",
        b"2025-06-15T15:06:40.05012 ",
        b"@400000006850d9c60123abcd ",
    ],
)
def test_a_time_before_each_line(read, payloads, stamp):
    """It is nobody's but the wrapper's."""
    lines = [payloads.ours("one"), b"hello", b"", *payloads.pretty("two", 2)]
    result = read(b"".join(stamp + line + b"\n" for line in lines))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "blank": 1, "joined": len(lines) - 4}
    assert result.spans[0]["start_time_unix_nano"] == 1_800_000_000_000_000_000
    assert result.wrapper == "timestamps"


def test_dockers_times_inside_a_long_line_are_taken_out(read, payloads):
    """`docker logs -t` writes one every 16 KiB; the text is whole again, and it is told."""
    text = "x" * 40_000
    line = payloads.ours(text)
    pieces = [line[start : start + 16_384] for start in range(0, len(line), 16_384)]
    result = read(STAMP + STAMP.join(pieces))
    assert result.names == [text]
    assert result.classes == {"recovered": 1}
    assert "docker's time" in result.reason(1)


def test_a_time_elsewhere_in_a_long_line_stays(read, payloads):
    """Only at every 16 KiB is it docker's."""
    text = "x" * 20_000 + STAMP.decode()
    result = read(STAMP + payloads.ours(text))
    assert result.names == [text]
    assert result.classes == {"span": 1}

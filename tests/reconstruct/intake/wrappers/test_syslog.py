"""syslog and journalctl's text: headers of each kind, cookies, escapes, cut lines."""

import pytest

HEADERS = {
    "3164": b"<14>Jun 15 15:06:40 n1 env[77]: ",
    "file": b"Jun  5 15:06:40 n1 env[77]: ",
    "rsyslog": b"2025-06-15T15:06:40.050123+00:00 n1 env[77]: ",
    "precise": b"Jun 15 15:06:40.050123 n1 env[77]: ",
    "iso": b"2025-06-15T15:06:40+0000 n1 env[77]: ",
    "full": b"Sun 2025-06-15 15:06:40 UTC n1 env[77]: ",
    "unix": b"1750000000.050123 n1 env[77]: ",
    "monotonic": b"[   12.345678] n1 env[77]: ",
    "5424": b"<14>1 2025-06-15T15:06:40.05Z n1 env 77 ID47 - ",
    "5424 data": b'<14>1 2025-06-15T15:06:40Z n1 env 77 - [a b="]\\]" c="\\""][d] \xef\xbb\xbf',
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("cookie", [b"", b"@cee: ", b"@cee:"])
def test_syslog(read, payloads, origin_of, header, cookie):
    """Every header, with and without the cookie; over several lines too."""
    lines = [cookie + payloads.bare("one"), b"hello", b"", *payloads.pretty("two", 2)]
    result = read(b"".join(header + line + b"\n" for line in lines))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "blank": 1, "joined": len(lines) - 4}
    assert origin_of(result.spans[0]) == ("env", "n1", 77)
    assert result.wrapper == "syslog"


def test_a_header_without_pid(read, payloads, origin_of):
    """`-` is nothing, and so is what is not there."""
    result = read(
        b"Jun 15 15:06:40 n1 env: " + payloads.bare("one")
        + b"\n<14>1 - - - - - - " + payloads.bare("two", 2)
    )  # fmt: skip
    assert [origin_of(row) for row in result.spans] == [("env", "n1", None), (None, None, None)]


def test_escaped_line_feeds(read, payloads):
    """rsyslog writes a record over several lines as one; what is in a text stays."""
    text = b"#012".join(payloads.pretty("issue #012 is fixed"))
    result = read(HEADERS["3164"] + text)
    assert result.names == ["issue #012 is fixed"]
    compact = read(HEADERS["3164"] + payloads.bare("#012"))
    assert compact.names == ["#012"]


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_line_cut_by_syslog_is_torn(read, payloads, header):
    """Nothing of it becomes a span."""
    result = read((header + payloads.ours("one"))[:230] + b"\n")
    assert result.names == []
    assert result.classes == {"torn": 1}


def test_a_loggers_own_line_is_not_syslogs(read, payloads):
    """Its level is no host: the record is one among other things."""
    result = read(b"2025-06-15T15:06:40.050Z INFO spans: " + payloads.bare("one"))
    assert result.names == ["one"]
    assert result.spans[0]["host_name"] is None

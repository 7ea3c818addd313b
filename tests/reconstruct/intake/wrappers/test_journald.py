"""journalctl -o json: messages in every writing, pieces, what was left out."""

import json

import pytest


def entry(message, **more):
    fields = {
        "__REALTIME_TIMESTAMP": "1750000000050123",
        "_PID": "77",
        "SYSLOG_IDENTIFIER": "env",
        "_HOSTNAME": "n1",
        "MESSAGE": message,
    }
    return json.dumps(fields | more).encode() + b"\n"


def test_a_message_as_text_or_as_bytes(read, payloads, origin_of):
    """Odd bytes make it a list of numbers; a line feed in it does not matter."""
    text = payloads.bare("caf\u00e9")
    result = read(entry(text.decode()) + entry(list(text)) + entry("hello") + entry(""))
    assert result.names == ["café", "café"]
    assert result.classes == {"span": 2, "text": 1, "blank": 1}
    assert origin_of(result.spans[0]) == ("env", "n1", 77)
    assert result.wrapper == "journald"


def test_bytes_that_are_not_utf8_in_a_message(read, payloads):
    """They are U+FFFD and told, as on any line."""
    text = payloads.ours("caf?").replace(b"?", b"\xe9")
    result = read(entry(list(text)))
    assert result.names == ["caf\ufffd"]
    assert result.classes == {"recovered": 1}


def test_a_message_that_was_left_out_is_damage(read):
    """null: it was over 4 KiB; the reason says what to do."""
    result = read(entry(None))
    assert result.classes == {"torn": 1}
    assert "--all" in result.reason(1)


def test_a_field_that_was_given_several_times(read, payloads):
    """All messages are looked at; of the other fields the first counts."""
    messages = [payloads.bare("one").decode(), "hello", list(payloads.bare("two", 2))]
    result = read(entry(messages, SYSLOG_IDENTIFIER=["env", "other"]))
    assert sorted(result.names) == ["one", "two"]
    assert {row["server_name"] for row in result.spans} == {"env"}
    assert result.classes == {"recovered": 1}


def test_a_message_over_several_lines(read, payloads):
    """A record that was printed with one write is one entry."""
    result = read(entry("\n".join(line.decode() for line in payloads.pretty("one"))))
    assert result.names == ["one"]
    assert result.classes == {"span": 1}


@pytest.mark.parametrize(
    "piece",
    [
        {"CONTAINER_PARTIAL_MESSAGE": "true", "CONTAINER_ID": "c1"},
        {"_LINE_BREAK": "line-max", "_STREAM_ID": "s1"},
    ],
    ids=["docker", "LineMax"],
)
def test_pieces_join_per_source(read, payloads, piece):
    """Docker's driver and the journal cut lines; each in its own words."""
    whole = payloads.ours("one").decode()
    last = {field: value for field, value in piece.items() if field.endswith("_ID")}
    other = {field: value + "x" for field, value in last.items()}
    result = read(
        entry(whole[:50], **piece)
        + entry("from elsewhere", **other)
        + entry(whole[50:120], **piece)
        + entry(whole[120:], **last)
    )
    assert result.names == ["one"]
    assert result.classes == {"span": 1, "joined": 2, "text": 1}


def test_the_pid_of_a_containers_entry_is_not_its_own(read, payloads, origin_of):
    """It is that of the daemon which wrote the entry."""
    result = read(entry(payloads.bare("one").decode(), CONTAINER_ID="c1", CONTAINER_NAME="judge"))
    assert origin_of(result.spans[0]) == ("judge", "n1", None)


@pytest.mark.parametrize("pid", ["", "x", "9" * 30, None, ["7", "8"]])
def test_a_pid_that_is_none(read, payloads, pid):
    """Nothing is made of it; of several the first counts."""
    (row,) = read(entry(payloads.bare("one").decode(), _PID=pid)).spans
    assert row["process_pid"] == (7 if isinstance(pid, list) else None)


def test_entries_printed_over_several_lines(read, payloads):
    """`-o json-pretty` is the same."""
    value = json.loads(entry(payloads.bare("one").decode()))
    data = json.dumps(value, indent=8).encode()
    result = read(data)
    assert result.names == ["one"]
    assert result.classes == {"span": 1, "joined": data.count(b"\n")}


def test_an_object_with_a_message_alone_is_json(read):
    """Without a field of the journal's own it is someone else's."""
    assert read(b'{"MESSAGE":"hello"}').classes == {"json": 1}

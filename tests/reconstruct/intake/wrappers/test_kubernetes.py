"""kubectl --prefix and stern: pods told apart, times on either side, stern's JSON."""

import json

import pytest


@pytest.mark.parametrize(
    "prefix",
    [
        b"[pod/env-0/env] ",
        b"[pod/env-0/env] 2025-06-15T15:06:40.050123456Z ",
        b"2025-06-15T15:06:40.05Z [pod/env-0/env] ",
    ],
)
def test_kubectl(read, payloads, origin_of, prefix):
    """With a time before or behind the prefix, over several lines too."""
    lines = [payloads.bare("one"), b"hello", *payloads.pretty("two", 2)]
    result = read(b"".join(prefix + line + b"\n" for line in lines))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "joined": len(lines) - 3}
    assert origin_of(result.spans[0]) == ("env", "env-0", None)
    assert "kubectl" in result.wrapper


def test_two_pods_print_over_several_lines_at_once(read, payloads):
    """Lines are put together per pod."""
    first, second = payloads.pretty("first"), payloads.pretty("second", 2)
    both = b"".join(
        b"[pod/env-0/env] " + one + b"\n[pod/env-1/env] " + other + b"\n"
        for one, other in zip(first, second, strict=True)
    )
    assert sorted(read(both).names) == ["first", "second"]


@pytest.mark.parametrize(
    "prefix",
    [b"env-0 env ", b"gym env-0 env ", b"\x1b[36menv-0\x1b[0m \x1b[96menv\x1b[0m "],
)
def test_stern(read, payloads, origin_of, prefix):
    """Plain, with namespaces, coloured: believed because all lines are so."""
    lines = [payloads.bare("one"), b"INFO: hello", *payloads.pretty("two", 2)]
    result = read(b"".join(prefix + line + b"\n" for line in lines))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "joined": len(lines) - 3}
    assert origin_of(result.spans[0]) == ("env", "env-0", None)
    assert result.wrapper == "stern"


def stern_json(message, **more):
    value = {
        "message": message,
        "nodeName": "n1",
        "namespace": "gym",
        "podName": "env-0",
        "containerName": "env",
    }
    return json.dumps(value | more).encode() + b"\n"


def test_sterns_json(read, payloads, origin_of):
    """The message is the line, with or without its line feed."""
    text = payloads.bare("one").decode()
    result = read(stern_json(text) + stern_json("hello\n") + stern_json("") + stern_json('{"a":1}'))
    assert result.names == ["one"]
    assert result.classes == {"span": 1, "text": 1, "blank": 1, "json": 1}
    assert origin_of(result.spans[0]) == ("env", "env-0", None)


@pytest.mark.parametrize("number", [3, 12345678901234567890123, 1e300])
def test_sterns_json_with_the_message_as_an_object(read, payloads, number):
    """Every digit of it is kept."""
    message = payloads.bare("one", attributes={"n": number}).decode()
    line = '{"pod": "env-0", "container": "env", "message": ' + message + "}"
    (row,) = read(line.encode()).spans
    assert json.loads(row["attributes"])["n"] == number


def test_a_log_record_that_also_has_a_pod_is_none_of_sterns(read):
    """Its message is not the whole of it."""
    value = {"message": "hello", "pod": "p", "container": "c", "level": "info"}
    assert read(json.dumps(value).encode()).classes == {"json": 1}

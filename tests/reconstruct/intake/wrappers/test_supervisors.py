"""NeMo Gym, docker compose, honcho: whose line it is."""

import pytest


@pytest.mark.parametrize(
    ("prefix", "wrapper", "server"),
    [
        (b"(agent) ", "gym", "agent"),
        (b"(agent) (judge) (tools) ", "gym", "tools"),
        (b"env-1  | ", "compose", "env-1"),
        (b"env_1 | ", "compose", "env_1"),
        (b"\x1b[36menv-1  | \x1b[0m", "compose", "env-1"),
        (b"env-1  | 2025-06-15T15:06:40.050123456Z ", "compose > timestamps", "env-1"),
        (b"15:06:40 env.1 | ", "honcho", "env.1"),
        (b"15:06:40 env.1    | ", "honcho", "env.1"),
        (b"\x1b[36m15:06:40 env.1 | \x1b[0m", "honcho", "env.1"),
        (b"env     | ", "compose", "env"),
    ],
)
def test_prefixes(read, payloads, prefix, wrapper, server):
    """Padded, coloured, with a time; records on one line and over several."""
    lines = [payloads.bare("one"), b"INFO: hello", b"", *payloads.pretty("two", 2)]
    result = read(b"".join(prefix + line + b"\n" for line in lines))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "blank": 1, "joined": len(lines) - 4}
    assert {row["server_name"] for row in result.spans} == {server}
    assert result.wrapper == wrapper


def test_records_of_two_servers_on_one_line(read, payloads):
    """Each keeps the name right before it."""
    line = b"(agent) " + payloads.bare("a") + b"(judge) " + payloads.bare("j", 2)
    result = read(line)
    assert [(row["name"], row["server_name"]) for row in result.spans] == [
        ("a", "agent"),
        ("j", "judge"),
    ]
    assert result.classes == {"recovered": 1}

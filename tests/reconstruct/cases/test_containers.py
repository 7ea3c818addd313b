"""Lines as a container's runtime keeps them: with a time and a stream, cut into pieces."""

import json

import pytest

NOON = 1_748_779_200_000_000_000  # 2025-06-01T12:00:00Z


class TestC25ContainerRuntimes:
    """A runtime's time, stream and pieces of 16 KiB are taken off, per stream."""

    PROMPT = "é" * 20_000

    @pytest.fixture
    def big(self, line):
        return line(2, 1, name="model call", attributes={"prompt": self.PROMPT})

    def test_cri(self, write, big, line, joined, read):
        """Two P parts and an F, cut inside a character, a line of stderr between them."""
        time = b"2025-06-01T12:34:56.123456789Z "
        cut = big.index("é".encode()) + 16_001
        assert big[cut - 1 : cut + 1] == "é".encode()
        write(
            {
                "cri.log": joined(
                    time + b"stdout F " + line(1, name="POST /run"),
                    time + b"stdout P " + big[:cut],
                    time + b"stderr F WARNING: slow",
                    time + b"stdout P " + big[cut : cut + 16_384],
                    time + b"stdout F " + big[cut + 16_384 :],
                    time + b"stdout F " + line(3, 2, name="POST /v1"),
                )
            }
        )
        with read() as found:
            assert found.names() == ["POST /run", "POST /v1", "model call"]
            (call,) = found.rows("SELECT * FROM spans WHERE name = 'model call'")
            assert json.loads(call["attributes"]) == {"prompt": self.PROMPT}
            assert call["start_time_unix_nano"] == NOON
            assert found.classes() == {"span": 3, "joined": 2, "text": 1}
            depths = found.rows("SELECT depth FROM span_tree ORDER BY depth")
            assert [row["depth"] for row in depths] == [0, 1, 2]

    def test_docker(self, write, big, line, joined, read):
        """Each piece in an object of its own; the streams' pieces are not mixed."""

        def entry(log, stream="stdout"):
            return json.dumps(
                {"log": log, "stream": stream, "time": "2025-06-01T12:34:56Z"}
            ).encode()

        text = big.decode()
        write(
            {
                "docker-json.log": joined(
                    entry(text[:16_384]),
                    entry("WARN", "stderr"),
                    entry(text[16_384:] + "\n"),
                    entry("ING\n", "stderr"),
                    entry(line(1).decode() + "\n"),
                )
            }
        )
        with read() as found:
            assert found.names() == ["model call", "span 1"]
            assert found.classes() == {"span": 2, "joined": 2, "text": 1}

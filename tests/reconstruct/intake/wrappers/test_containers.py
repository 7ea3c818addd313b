"""docker's json-file and the CRI: whole lines, pieces, streams, rotations, what paths tell."""

import json
from typing import Any

import pytest


def docker(text: str, stream: str = "stdout", **more: Any) -> bytes:
    return (
        json.dumps({"log": text, "stream": stream, "time": "2025-06-15T15:06:40.05Z"} | more) + "\n"
    ).encode()


def cri(text: bytes, stream: bytes = b"stdout", tag: bytes = b"F") -> bytes:
    return b"2025-06-15T15:06:40.050123456Z %s %s %s\n" % (stream, tag, text)


def test_docker(read, payloads):
    """Text and records are what they are without it; the wrapper's time is not the span's."""
    one = payloads.ours("one").decode()
    result = read(docker(one + "\n") + docker("INFO: hello\n") + docker("\n") + docker('{"a":1}\n'))
    assert result.names == ["one"]
    assert result.classes == {"span": 1, "text": 1, "blank": 1, "json": 1}
    assert result.spans[0]["start_time_unix_nano"] == 1_800_000_000_000_000_000
    assert result.wrapper == "docker"


def test_dockers_labels_name_the_server(read, payloads, origin_of):
    """docker compose writes the service's name there when it is told to."""
    labels = {"com.docker.compose.service": "judge", "tag": "x"}
    result = read(docker(payloads.bare("one").decode() + "\n", attrs=labels))
    assert origin_of(result.spans[0]) == ("judge", None, None)


def test_pieces_of_docker_join_per_stream(read, payloads):
    """Two streams interleave; each record takes the place of its first piece."""
    out, err = payloads.ours("out").decode(), payloads.ours("err", 2).decode()
    result = read(
        docker(out[:40])
        + docker(err[:50], "stderr")
        + docker(out[40:90])
        + docker(err[50:] + "\n", "stderr")
        + docker(out[90:] + "\n")
    )
    assert {row["name"]: row["line"] for row in result.spans} == {"out": 1, "err": 2}
    assert result.classes == {"span": 2, "joined": 3}


def test_a_character_that_docker_cut_in_two_is_told(read, payloads):
    """Both halves are U+FFFD for good; the record is kept, and says so."""
    text = payloads.ours("café au lait").decode()
    cut = text.index("é")
    result = read(docker(text[:cut] + "\ufffd") + docker("\ufffd" + text[cut + 1 :] + "\n"))
    assert result.names == ["caf\ufffd\ufffd au lait"]
    assert result.classes == {"recovered": 1, "joined": 1}
    assert "cut in two" in result.reason(1)


def test_dockers_time_in_the_text_of_a_piece_is_taken_out(read, payloads):
    """Some versions write it before each further piece."""
    text = payloads.ours("one").decode()
    result = read(
        docker(text[:100]) + docker("2021-10-18T17:35:54.266092638+08:00 " + text[100:] + "\n")
    )
    assert result.names == ["one"]
    assert result.classes == {"recovered": 1, "joined": 1}
    assert "docker's time" in result.reason(1)


@pytest.mark.parametrize(
    "value",
    [
        {"log": "x\n", "stream": "stdout"},
        {"log": "x\n", "time": "2025-06-15T15:06:40.05Z"},
        {"log": 1, "stream": "stdout", "time": "2025-06-15T15:06:40.05Z"},
        {"log": "x\n", "stream": "both", "time": "2025-06-15T15:06:40.05Z"},
    ],
)
def test_an_object_that_only_looks_like_dockers_is_json(read, value):
    """All three keys, as docker writes them, or it is no wrapper."""
    result = read(json.dumps(value).encode())
    assert result.classes == {"json": 1}
    assert result.wrapper is None


def test_a_torn_object_of_docker_is_damage(read, payloads):
    """The record in it is text with backslashes, and still a record that is missing."""
    line = docker(payloads.ours("one").decode() + "\n")
    result = read(line[:200] + b"\n" + line)
    assert result.names == ["one"]
    assert result.classes == {"torn": 1, "span": 1}


def test_two_objects_of_docker_on_one_line(read, payloads):
    """As a crash or a hole in the file leaves them: both records are found."""
    first, second = (
        docker(payloads.ours(name, n).decode() + "\n") for n, name in enumerate("ab", 1)
    )
    result = read(first.rstrip() + second)
    assert result.names == ["a", "b"]
    assert result.classes == {"recovered": 1}


def test_cri(read, payloads):
    """A CRI-O offset, an empty line, the two streams."""
    other = cri(payloads.ours("two", 2)).replace(b"Z ", b"+00:00 ", 1)
    result = read(cri(payloads.ours("one")) + other + cri(b"hello", b"stderr") + cri(b""))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 1, "blank": 1}
    assert result.wrapper == "cri"


def test_pieces_of_the_cri_join_per_stream(read, payloads):
    """Cut anywhere: inside a character, at spaces, with the other stream in between."""
    whole = payloads.ours("é  e")
    middle = whole.index("é".encode()) + 1
    spaces = whole.index(b"  e") + 1
    result = read(
        cri(whole[:middle], tag=b"P")
        + cri(b"warning: slow", b"stderr")
        + cri(whole[middle:spaces], tag=b"P")
        + cri(whole[spaces:])
    )
    assert result.names == ["é  e"]
    assert result.classes == {"span": 1, "text": 1, "joined": 2}


def test_pieces_that_never_end_are_a_line(read, payloads):
    """The file ends: what is there is a torn record, or a whole one without its line feed."""
    whole = payloads.ours("one")
    result = read(cri(whole[:120], tag=b"P") + cri(whole[120:200], tag=b"P"))
    assert result.classes == {"torn": 1, "joined": 1}
    result = read(cri(whole[:120], tag=b"P") + cri(whole[120:], tag=b"P"))
    assert result.names == ["one"]
    assert result.classes == {"span": 1, "joined": 1}


def test_pieces_in_pieces_that_never_end(read, payloads):
    """Whatever was held in whichever layer is handled at the end."""
    inner = cri(payloads.ours("one"), tag=b"P").rstrip(b"\n")
    result = read(cri(cri(inner, b"stderr", b"P").rstrip(b"\n"), tag=b"P"))
    assert result.names == ["one"]
    assert result.classes == {"span": 1}


def test_pieces_join_across_a_rotation(read, payloads):
    """The record lies where it begins, in the older file; each file's classes add up."""
    whole = payloads.ours("one")
    result = read(
        {
            "pods/0.log": cri(whole[70:]) + cri(payloads.ours("two", 2)),
            "pods/0.log.20250615-150640": cri(b"text") + cri(whole[:70], tag=b"P"),
        }
    )
    assert sorted((row["file"], row["line"], row["name"]) for row in result.spans) == [
        ("pods/0.log", 2, "two"),
        ("pods/0.log.20250615-150640", 2, "one"),
    ]
    assert result.by_file == {
        "pods/0.log.20250615-150640": {"text": 1, "span": 1},
        "pods/0.log": {"joined": 1, "span": 1},
    }


def test_pieces_of_other_files_do_not_join(read, payloads):
    """The same stream name in another file is another stream."""
    whole = payloads.ours("one")
    result = read({"a.log": cri(whole[:70], tag=b"P"), "b.log": cri(whole[70:])})
    assert result.names == []
    assert result.classes == {"torn": 2}


@pytest.mark.parametrize(
    "path",
    [
        "pods/ns_env-0_12ab/env/0.log",
        "pods/ns_env-0_12ab/env/3.log.20250615-150640",
        "containers/env-0_ns_env-" + "ab" * 32 + ".log",
    ],
)
def test_the_path_names_pod_and_container(read, payloads, origin_of, path):
    """Nothing else does; records that name their process are left alone."""
    result = read({path: cri(payloads.bare("one")) + cri(payloads.ours("two", 2))})
    assert [origin_of(row) for row in result.spans] == [
        ("env", "env-0", None),
        ("env", None, None),
    ]


def test_the_path_names_the_container_of_docker(read, payloads, origin_of):
    """Its short id is the host name that docker gives it."""
    container = "0123456789ab" + "cd" * 26
    path = f"containers/{container}/{container}-json.log"
    result = read({path: docker(payloads.bare("one").decode() + "\n")})
    assert origin_of(result.spans[0]) == (None, "0123456789ab", None)


def test_records_of_two_pods_without_a_name_are_two_instances(read, payloads):
    """The pod tells them apart, where the records do not."""
    result = read(
        {
            f"pods/ns_env-{number}_12ab/env/0.log": cri(payloads.bare("x", number + 1))
            for number in range(2)
        }
    )
    assert len({row["instance"] for row in result.spans}) == 2

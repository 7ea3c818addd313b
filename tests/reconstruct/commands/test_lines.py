"""`reconstruct lines`: every line has a class, the classes add up, damage has a place."""

import gzip

from reconstruct.commands.lines import CLASSES, DAMAGE
from reconstruct.intake.ledger import LineClass
from reconstruct.live.screen import DAMAGED


def test_the_classes_are_intakes():
    assert set(CLASSES) == {line_class.value for line_class in LineClass}
    assert set(DAMAGE) <= set(CLASSES)
    assert DAMAGED == DAMAGE, "what is damaged is the same everywhere"


def test_each_file_adds_up_and_so_does_the_whole(logs, run):
    logs["agent"].write("Uvicorn running\n\n")
    done = run("lines", "logs")
    assert done.code == 0
    assert done.out.splitlines() == [
        "FILE             LINES  SPAN  PROCESS  TEXT  BLANK",
        "logs/agent.log       7     3        2     1      1",
        "logs/driver.log      5     3        2     -      -",
        "logs/model.log       5     3        2     -      -",
        "all 3 files         17     9        6     1      1",
    ]
    assert done.err == "no damaged lines\n"


def test_json_has_one_row_per_file_and_class(logs, run):
    rows = run("lines", "logs", "--json").json
    assert {(row["file"], row["class"], row["lines"]) for row in rows} == {
        (f"logs/{service}.log", name, lines)
        for service in ("agent", "driver", "model")
        for name, lines in (("span", 3), ("process", 2))
    }


def test_damage_is_listed_with_its_place_and_reason(logs, run):
    logs["model"].write('{"record_type":"span","seq":99,"trace_id":"ab')
    done = run("lines", "logs")
    assert done.code == 0
    place, name, *reason = done.out.splitlines()[-1].split()
    assert (place, name) == ("logs/model.log:6", "torn")
    assert reason[0] == "a"
    assert run("lines", "logs", "--strict").code == 1


def test_strict_is_content_with_ordinary_text(logs, run):
    logs["model"].write("just text\n")
    assert run("lines", "logs", "--strict").code == 0


def test_lines_of_a_class_are_listed_on_demand(logs, run):
    logs["model"].write("first\nsecond\n")
    done = run("lines", "logs", "--class", "text", "--json", "--limit", "1")
    assert [(row["place"], row["sample"]) for row in done.json] == [("logs/model.log:6", "first")]
    assert done.err == "… 1 more text line; --limit 0 shows all\n"


def test_what_the_files_are_wrapped_in_is_shown(logs, run):
    """A column appears when a file is; what most of its lines are in counts."""
    path = logs["model"].path
    lines = path.read_text().splitlines()
    path.write_text("".join(f"2025-06-15T15:06:40Z stdout F (x) {line}\n" for line in lines))
    done = run("lines", "logs")
    assert done.out.splitlines()[:4] == [
        "FILE             WRAPPER    LINES  SPAN  PROCESS",
        "logs/agent.log   -              5     3        2",
        "logs/driver.log  -              5     3        2",
        "logs/model.log   cri > gym      5     3        2",
    ]
    rows = run("lines", "logs", "--json").json
    assert {(row["file"], row["wrapper"]) for row in rows} == {
        ("logs/agent.log", None),
        ("logs/driver.log", None),
        ("logs/model.log", "cri > gym"),
    }


def test_a_wrapper_is_forced(logs, run):
    """The only one that is looked for, or none at all."""
    path = logs["model"].path
    path.write_text("".join(f"(x) {line}\n" for line in path.read_text().splitlines()))
    assert "recovered" not in run("lines", "logs").out.lower()
    assert "recovered" not in run("lines", "logs", "--wrapper", "gym").out.lower()
    assert run("lines", "logs", "--wrapper", "none", "--strict").code == 1
    done = run("summary", "logs", "--wrapper", "dokcer")
    assert done.code == 2
    assert "did you mean 'docker'?" in done.err
    assert "kubectl" in done.err


def test_strict_says_what_is_damaged_and_where(logs, run):
    """Each line once with its place, class and reason, however few are shown; then how many."""
    logs["model"].write('{"record_type":"span","seq":98\n{"trace_id":1,"record_type":"span"}\n')
    logs["agent"].write("(x) {}{'trace_id': 1}\n")
    done = run("lines", "logs", "--strict", "--class", "text")
    assert done.code == 1
    torn = "torn: a record that is not whole"
    assert done.err.splitlines()[-4:-1] == [
        f"logs/agent.log:6: {torn}: no JSON object in it",
        f"logs/model.log:6: {torn}: expecting ',' delimiter at character 30",
        "logs/model.log:7: invalid: end_time_unix_nano is missing or not ns since 1970",
    ]
    assert done.err.splitlines()[-1] == "damaged: 2 torn, 1 invalid"
    done = run("lines", "logs", "--strict", "--json", "--limit", "1")
    assert [row["class"] for row in done.json if row["class"] in DAMAGE] == [
        "torn",
        "invalid",
        "torn",
    ]
    assert done.err.splitlines()[1] == "… 2 more damaged lines; --limit 0 shows all"


def test_strict_fails_for_a_file_that_could_not_be_read(logs, run):
    """No line of it is damaged, and still something is missing."""
    whole = gzip.compress(logs["agent"].path.read_bytes())
    logs["agent"].path.write_bytes(whole[:12])
    done = run("lines", "logs", "--strict")
    assert done.code == 1
    assert "logs/agent.log: gzip data ends early; what is there was read" in done.err
    assert done.err.splitlines()[-1] == "damaged: 1 file not read whole"
    logs["agent"].path.write_bytes(whole)
    assert run("lines", "logs", "--strict").code == 0

"""`reconstruct lines`: every line has a class, the classes add up, damage has a place."""

from reconstruct.commands.lines import CLASSES, DAMAGE
from reconstruct.intake.ledger import LineClass


def test_the_classes_are_intakes():
    assert set(CLASSES) == {line_class.value for line_class in LineClass}
    assert set(DAMAGE) <= set(CLASSES)


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

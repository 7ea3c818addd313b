"""The layout: every file has one noun, says what it decides, and can be read in one sitting."""

import ast
import re
from pathlib import Path

import pytest

import gymlog
import reconstruct

ROOTS = [Path(gymlog.__file__).parent, Path(reconstruct.__path__[0])]
FILES = {
    str(path.relative_to(root.parent)): path
    for root in ROOTS
    for path in sorted(root.rglob("*.py"))
}

each_file = pytest.mark.parametrize("name", FILES)


@each_file
def test_a_file_says_in_one_sentence_what_it_decides(name: str) -> None:
    """The first paragraph of its docstring."""
    docstring = ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8")))
    assert docstring, "has no docstring"
    sentence = docstring.split("\n\n")[0].replace("\n", " ")
    assert sentence.endswith(".")
    assert not re.search(r"[.!?] [A-Z]", sentence), "is more than one sentence"
    assert len(sentence) > 20


@each_file
def test_a_file_has_at_most_500_lines(name: str) -> None:
    """Past that it holds more than one noun."""
    assert len(FILES[name].read_text(encoding="utf-8").splitlines()) <= 500


@each_file
def test_a_file_is_named_after_a_noun(name: str) -> None:
    """Nothing collects what has no place."""
    assert not {"utils", "util", "helpers", "helper", "common", "misc"} & set(
        Path(name).with_suffix("").parts
    )


@each_file
def test_what_is_public_says_what_it_does(name: str) -> None:
    """Functions and classes without an underscore."""
    missing = [
        node.name
        for node in ast.parse(FILES[name].read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and "overload" not in {getattr(one, "id", "") for one in node.decorator_list}
        and not ast.get_docstring(node)
    ]
    assert missing == []


def test_both_packages_are_typed() -> None:
    """Type checkers of their users look for the marker."""
    for root in ROOTS:
        assert (root / "py.typed").is_file()


SPEAKS_OF_THE_WORK = re.compile(r"\bissue \d|\bTODO\b|\bFIXME\b|\bXXX\b|/(?:work|tmp|home)/")


@each_file
def test_a_file_speaks_of_the_code_and_not_of_the_work_on_it(name: str) -> None:
    """No notes to oneself, no paths of one machine."""
    found = SPEAKS_OF_THE_WORK.search(FILES[name].read_text(encoding="utf-8"))
    assert found is None

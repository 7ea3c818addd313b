"""Commands that answer a question: each figure is explained, and the SQL is what is run."""

import re
import shlex

import pytest

from reconstruct.cli import _reconstruct
from reconstruct.commands.answers import Question

ANSWERS = {
    name: command
    for name, command in _reconstruct.commands.items()
    if hasattr(command.callback, "meanings")
}


def words_of(name):
    """The example in its help, with all rows."""
    (line,) = re.findall(r"Example: [^\n]+\n\s+reconstruct (.+)", ANSWERS[name].help)
    limit = ["--limit", "0"] if any(p.name == "limit" for p in ANSWERS[name].params) else []
    return [*shlex.split(line.split(" > ")[0]), *limit]


@pytest.mark.parametrize("name", ANSWERS)
def test_every_figure_is_explained(name, logs, run):
    """Without reading anything."""
    meanings = ANSWERS[name].callback.meanings()
    assert all(text.endswith((".", ")")) for text in meanings.values())
    done = run(name, "nowhere/", "--explain")
    assert done.code == 0, done
    for key in meanings:
        assert re.search(rf"  {key}$", done.out, re.MULTILINE)
    shown = run(name, "nowhere/", "--explain", "--json").json
    assert {row["column"]: row["meaning"] for row in shown} == meanings


@pytest.mark.parametrize("name", ANSWERS)
def test_every_column_of_the_answer_is_explained(name, logs, run):
    words = [word for word in words_of(name) if word != "--json"]
    answer = run(*words, "--json").json
    for row in answer if isinstance(answer, list) else [answer]:
        assert set(row) <= set(ANSWERS[name].callback.meanings())


@pytest.mark.parametrize("name", ANSWERS)
def test_the_sql_is_what_is_run(name, logs, run):
    """Given to `reconstruct query`, it gives the same rows."""
    words = [word for word in words_of(name) if word != "--json"]
    text = run(*words, "--sql").out
    statements = [statement for statement in text.split(";\n") if statement.strip()]
    assert statements
    answers = [
        run("query", sql, "logs/", "--format", "json", "--max-rows", "0") for sql in statements
    ]
    for done in answers:
        assert done.code == 0, done
    answer = run(*words, "--json")
    if len(statements) == 1 and isinstance(answer.json, list):
        assert answers[0].json == answer.json


def test_values_stand_in_their_places():
    """As DuckDB reads them."""
    question = Question(
        """
        SELECT 1
        WHERE $name = 'it' AND $numbers = [1] AND $nothing::VARCHAR IS NULL

        AND $truth
        """,
        {"name": "it's", "numbers": [1, 2.5, None], "nothing": None, "truth": True},
    )
    assert str(question).splitlines() == [
        "SELECT 1",
        "WHERE 'it''s' = 'it' AND [1, 2.5, NULL] = [1] AND NULL::VARCHAR IS NULL",
        "AND TRUE;",
    ]

"""Which command runs, which exit code its end becomes, and what is imported before."""

import os
import subprocess
import sys

import click
import pytest

from reconstruct import cli
from reconstruct.errors import DestinationError, InputError, ReconstructError, UsageError

HEAVY = {"duckdb", "rich", "pyarrow", "fastapi", "opentelemetry", "pydantic", "grpc", "orjson"}


def run(arguments, capsys):
    code = cli.main(arguments)
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["show", "--help"], ["export", "otlp", "--help"]]
)
def test_help_imports_nothing_heavy(arguments):
    program = (
        "import sys; from reconstruct.cli import main\n"
        f"code = main({arguments!r})\n"
        f"loaded = {HEAVY!r} & {{name.partition('.')[0] for name in sys.modules}}\n"
        "sys.exit(f'imported {loaded}' if loaded else code)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert "Usage: reconstruct" in process.stdout


def test_no_command_imports_pandas(tmp_path):
    """Which is there, and may be imported afterwards."""
    (tmp_path / "a.log").write_text("just text\n")
    program = (
        "import sys; from reconstruct.cli import main\n"
        f"code = main(['lines', {str(tmp_path)!r}])\n"
        "assert 'pandas' not in sys.modules\n"
        "import pandas, pyarrow\n"
        "assert pyarrow.table({'a': [1]}).to_pandas()['a'].tolist() == [1]\n"
        "sys.exit(code)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (ReconstructError("no"), 1, "error: no\n"),
        (UsageError("odd call"), 2, "error: odd call\n"),
        (InputError("nothing\nhere"), 3, "error: nothing\\nhere\n"),
        (DestinationError("refused"), 4, "error: refused\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
    ],
)
def test_an_end_has_its_exit_code_and_one_line_on_stderr(raised, code, words, capsys, monkeypatch):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr(cli.summary.command, "callback", fail)
    returned, out, err = run(["."], capsys)
    assert (returned, out) == (code, "")
    assert err.lstrip("\n") == words  # click leaves the line on which ^C stands


def test_a_mistyped_command_gets_a_suggestion(capsys):
    code, out, err = run(["sumary", "logs/"], capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: no command and no file 'sumary'; did you mean 'summary'?\n")


def test_a_path_that_looks_like_a_command_is_read_when_it_exists(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sumary").write_text("only text\n")
    code, out, _ = run(["sumary"], capsys)
    assert code == 0
    assert "1 line: 1 text" in out


def test_anything_else_is_a_path_for_summary(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(["missing/*.log"], capsys)
    assert (code, out) == (3, "")
    assert err.startswith("error: no log files match 'missing/*.log'")


@pytest.mark.parametrize(
    "arguments",
    [["traces", "--sort", "colour"], ["show"], ["--nonsense"], ["lines", "--limit", "-1"]],
)
def test_wrong_usage_is_2_and_points_to_help(arguments, capsys):
    code, out, err = run(arguments, capsys)
    assert (code, out) == (2, "")
    error, hint = err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("try: reconstruct")
    assert hint.endswith("--help")


def test_no_arguments_summarise_the_current_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("only text\n")
    assert "1 file" in run([], capsys)[1]


def test_options_without_a_command_are_the_summarys(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("only text\n")
    code, out, _ = run(["--json", "a.log"], capsys)
    assert code == 0
    assert out.startswith("{")


def test_help_lists_every_command_with_words(capsys):
    code, out, _ = run(["--help"], capsys)
    assert code == 0
    commands = out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in commands] == list(cli._reconstruct.commands)
    assert all(len(line.split()) > 2 for line in commands)


def test_head_gets_its_lines_in_silence(tmp_path):
    (tmp_path / "a.log").write_text("text\n" * 20_000)
    command = (
        f"'{sys.executable}' -m reconstruct.cli lines --class text --limit 0 {tmp_path} | head -2"
    )
    process = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert len(process.stdout.splitlines()) == 2
    assert process.stderr == ""

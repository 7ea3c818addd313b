"""`--store` and `--no-store`: where what was read is kept."""

from pathlib import Path


def test_a_store_by_name(logs, run):
    """Two commands say the same; the second opens what the first kept."""
    command = ("rollouts", "logs", "--json", "--store", "kept")
    first = run(*command)
    (kept,) = Path("kept").rglob("logs.duckdb")
    written = kept.stat().st_mtime_ns
    second = run(*command)
    assert (first.code, len(first.json), first.err) == (0, 3, "")
    assert (second.code, second.json, second.err) == (0, first.json, "")
    assert kept.stat().st_mtime_ns == written


def test_small_logs_are_not_kept(logs, run):
    """Nothing appears beside them, asked for or not."""
    before = sorted(Path().rglob("*"))
    assert run("summary", "logs").code == 0
    assert run("summary", "logs", "--no-store").code == 0
    assert sorted(Path().rglob("*")) == before


def test_a_store_that_cannot_be_written(logs, run):
    """The answer comes all the same, and one line says why there is no store."""
    Path("file").write_text("")
    done = run("rollouts", "logs", "--json", "--store", "file/kept")
    assert (done.code, len(done.json)) == (0, 3)
    assert done.err.startswith("no store in file/kept: ")


def test_standard_input_cannot_be_kept(logs, run, monkeypatch):
    """It is read, and one line says so."""
    with next(Path("logs").glob("*.log")).open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        done = run("lines", "-", "--json", "--store", "kept")
    assert (done.code, done.err) == (0, "no store: standard input and pipes cannot be read again\n")
    assert not Path("kept").exists()


def test_a_contradiction(logs, run):
    """Both options at once are an error of usage."""
    done = run("summary", "logs", "--store", "kept", "--no-store")
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "error: --store and --no-store contradict each other",
    )

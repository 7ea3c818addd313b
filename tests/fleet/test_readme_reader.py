"""The README's code blocks about reading logs do what it says."""

import json
import re
import shutil

import pytest

from reconstruct.findings import CAUSES
from tests.fleet.readme import ROOT, Block, block


def test_the_commands_of_the_reader_run(shell):
    """Each line of the block answers, and says something."""
    answers_of(shell, block("reconstruct logs/ "))


def answers_of(shell, commands: Block) -> list[str]:
    """Run each line; return what it printed, or wrote to a file."""
    answers = []
    for line in commands.text.splitlines():
        command = line.partition("  #")[0].strip()
        done = shell(f"{command} && {{ [ ! -f calls.mmd ] || cat calls.mmd; rm -f calls.mmd; }}")
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        assert done.stdout.strip() or done.stderr.strip(), command
        answers.append(done.stdout)
    return answers


def test_where_the_time_went(shell):
    """By path and by kind of work."""
    path, one, why, _ = answers_of(shell, block("reconstruct path logs/ "))
    assert "gym.model.responses" in path
    assert "is all of rollout" in one.splitlines()[-1]
    assert "MODEL" in why.splitlines()[0]


def test_counts_and_times(shell):
    """Nothing broke, nothing is called over and over."""
    stats, _, _, errors, repeats = answers_of(shell, block("reconstruct stats logs/ "))
    assert "gym.model.responses" in stats
    assert (errors, repeats) == ("", "")


def test_counts_of_a_query(shell):
    """By the routes of the servers alone."""
    done = shell(block('reconstruct query "\n  WITH chosen').text)
    assert done.returncode == 0, done.stderr
    assert "/v1/responses" in done.stdout


def test_what_is_stuck_and_what_held_a_step_up(shell):
    """The run is over: nothing is stuck then; the step has all its rollouts."""
    stuck, _, steps, held_up = answers_of(shell, block("reconstruct stuck logs/ "))
    assert stuck.strip() == "" or "nothing" in stuck.lower()
    assert "rollout" in steps
    assert len(held_up.splitlines()) == 6


def test_what_is_broken(shell):
    """Nothing is, and nothing is proposed; every cause has its row in the table."""
    verdict, proposals = answers_of(shell, block("reconstruct doctor logs/ "))
    assert verdict.startswith("Nothing is broken")
    assert len(proposals.splitlines()) == 1
    table = (ROOT / "README.md").read_text().partition("<summary>Causes</summary>")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", table.partition("</details>")[0], re.MULTILINE)
    assert dict(rows) == CAUSES


def test_who_calls_whom(shell):
    """The agent calls the model, by clocks of one machine."""
    drawn, _, diagram, clocks, _, path, startup = answers_of(
        shell, block("reconstruct map logs/\n")
    )
    assert "model" in drawn
    assert diagram.startswith(("graph", "flowchart"))
    assert clocks.strip()
    assert "gym.model.responses" in path
    assert startup.strip() == "" or "ready" in startup


def test_what_changed(shell):
    """Few rollouts, so nothing is sure; two of them are one tree."""
    cohorts, tree = answers_of(shell, block("reconstruct diff --slowest 10% logs/ "))
    assert "gym.model.responses" in cohorts
    assert [line[:14].split() for line in tree.splitlines()[:2]] == [
        ["A", "rollout", "0-0"],
        ["B", "rollout", "0-1"],
    ]


def test_the_query_answers(shell):
    """The SQL of the README gives the five slowest kinds of span."""
    done = shell(block('reconstruct query "\n  SELECT service_name, name, count').text)
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["service_name", "name", "spans", "p99_ms"]
    assert len(rows) == 5
    assert all(row.startswith("gym/") for row in rows)
    times = [float(row.split()[-1]) for row in rows]
    assert times == sorted(times, reverse=True)


def test_the_python_example_prints(shell, tmp_path):
    """Three rollouts, a number for each caller, and the slowest rollout as a waterfall."""
    (tmp_path / "slow.py").write_text(block("# slow.py").text)
    done = shell("python slow.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert "rollout_id" in done.stdout
    assert re.search(r"^gym/agent +\d", done.stdout, re.MULTILINE)
    assert re.search(r"gym\.model\.responses +model .*█", done.stdout)


def test_the_duckdb_shell_answers_by_itself(shell):
    """Five kinds of span, the slowest first, from the lines as they are."""
    done = shell(block('duckdb -c "\n  SELECT name').text.replace("duckdb -c", "duckdb -csv -c"))
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = done.stdout.splitlines()
    assert header == "name,spans,p99_ms"
    assert len(rows) == 5
    times = [float(row.split(",")[-1]) for row in rows]
    assert times == sorted(times, reverse=True)


def test_the_relations_load_in_the_duckdb_shell(shell):
    """The slowest rollouts are those that the program names."""
    script = block("reconstruct sql --logs").text.replace("duckdb -c", "duckdb -csv -c")
    done = shell(script)
    assert (done.returncode, done.stderr) == (0, "")
    slowest = [row.split(",")[0] for row in done.stdout.splitlines()[1:]]
    asked = json.loads(shell("reconstruct rollouts logs/ --json --limit 5").stdout)
    assert slowest == [row["rollout_id"] for row in asked]


def test_what_was_read_is_kept(shell, tmp_path):
    """Two commands of the README over one store: what the first kept, the second opens."""
    done = shell(block("reconstruct summary logs/ --store").text)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "kept").rglob("logs.duckdb"))) == 1
    assert "ROLLOUT" in done.stdout


def test_the_follow_command_ends_with_the_run(shell):
    """The run is over, so it ends at once, and nothing was wrong."""
    done = shell(block("reconstruct follow").text)
    assert (done.returncode, done.stdout) == (0, "")
    assert "8 finished, 0 open, 0 lost" in done.stderr


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq on the PATH")
def test_the_jq_recipe_works(shell, healthy):
    """One row of trace id, service, kind and name for each line with a trace id."""
    done = shell(block("cat logs/*.log | grep").text)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == len(healthy.spans) + len(healthy.of_type("span_start"))
    assert {len(row) for row in rows} == {4}


def test_the_export_command_says_that_nobody_listens(shell):
    """Without a receiver the export ends with 4 and one line that names the endpoint."""
    command = block("reconstruct export otlp ").text.strip()
    with_closed_port = command.replace("localhost:4318", "127.0.0.1:1") + " --timeout 2"
    done = shell(with_closed_port)
    assert done.returncode == 4
    assert "127.0.0.1:1" in done.stderr


def test_the_exports_write_their_files(shell, tmp_path):
    """Each line says what it wrote, and where."""
    for line in block("reconstruct export perfetto").text.splitlines():
        command = line.partition("  #")[0].strip()
        done = shell(command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stderr.startswith("exported ") or "lost nanoseconds" in done.stderr
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("r*.*")}
    assert sizes.keys() >= {"run.pftrace", "run.json.gz", "run.txt", "run.jsonl", "rollouts.csv"}
    assert min(sizes.values()) > 100


def test_the_page_is_written(shell, tmp_path):
    """One file, which names its three rollouts."""
    done = shell(block("reconstruct html --slowest").text)
    assert done.returncode == 0, done.stderr
    assert "the 3 slowest rollouts" in (tmp_path / "slowest.html").read_text()

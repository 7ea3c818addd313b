"""The `gymlog` command line: quick help and clear refusals (runs: tests/fleet)."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from gymlog.cli import main


def test_help_imports_nothing_heavy():
    """`gymlog demo --help` answers without the libraries that a run needs."""
    heavy = {"aiohttp", "duckdb", "fastapi", "opentelemetry", "pydantic", "reconstruct", "rich"}
    program = (
        "import sys\n"
        "from gymlog.cli import main\n"
        "main(['demo', '--help'], standalone_mode=False)\n"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert "slow-host" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fault", "slow"], "'slow' is not one of"),
        (["--span-groups", "defalt"], "did you mean 'default'?"),
        (["--rollouts", "0"], "0 is not in the range"),
        (["--out", __file__], "is a file"),
    ],
)
def test_a_demo_that_makes_no_sense_is_refused(options, said):
    """Exit code 2 and a line that says which option is wrong."""
    refused = CliRunner().invoke(main, ["demo", *options])
    assert refused.exit_code == 2
    assert said in refused.output

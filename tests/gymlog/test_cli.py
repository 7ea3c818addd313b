"""The `gymlog` command line: quick help and clear refusals (runs: tests/fleet)."""

import json
import os
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


CLEAN = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("OTEL_", "NEMO_", "GYMLOG_", "SLURM_"))
}


def config(*options, **variables):
    """Run `gymlog config` in an environment of its own; what cannot be decoded is escaped."""
    return subprocess.run(
        [sys.executable, "-m", "gymlog.cli", "config", *options],
        env=CLEAN | variables, capture_output=True, text=True, errors="backslashreplace",
        timeout=60, check=True,
    )  # fmt: skip


def test_config_shows_each_setting_with_its_source():
    """Text is a table, `--json` has the same names, values and sources."""
    variables = {"NEMO_LENS_ENABLED": "1", "GYMLOG_LINE_MAX_BYTES": "5000"}
    text, data = config(**variables), config("--json", **variables)
    assert text.stderr == data.stderr == ""
    assert text.stdout.splitlines()[0].split() == ["telemetry", "on:", "NEMO_LENS_ENABLED=1"]
    cells = {line.split()[0]: line.split()[1:] for line in text.stdout.splitlines() if line}
    settings = json.loads(data.stdout)["settings"]
    assert {one["name"]: one["source"] for one in settings} == {
        one["name"]: cells[one["name"]][-1] for one in settings
    }
    assert cells["GYMLOG_LINE_MAX_BYTES"] == ["5000", "GYMLOG_LINE_MAX_BYTES"]
    assert cells["NEMO_GYM_OTEL_ENABLED"] == ["on", "NEMO_LENS_ENABLED"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_config_says_what_a_server_would_say(options):
    """Its notices are on stderr; what is ignored is shown with what is accepted."""
    variables = {
        "NEMO_GYM_OTEL_ENABLED": "maybe",
        "NEMO_GYM_OTEL_SPAN_GROUPS": "per_rolout",
        "GYMLOG_PROPAGATE_TO": "a b",
        "OTEL_TRACES_SAMPLER": "sometimes",
    }
    shown = config(*options, **variables)
    for name in ("NEMO_GYM_OTEL_ENABLED", "GYMLOG_PROPAGATE_TO", "OTEL_TRACES_SAMPLER"):
        assert f"gymlog: {name}" in shown.stderr
    assert "did you mean 'per_rollout'?" in shown.stderr
    assert len(shown.stderr.splitlines()) == 4
    assert "1, true, yes, on, 0, false, no, off" in shown.stdout
    assert "parentbased_traceidratio" in shown.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_config_shows_no_secret_and_survives_any_bytes(options):
    """Of headers the names, of URLs no user; a value's line breaks and bytes break no line."""
    shown = config(
        *options,
        OTEL_EXPORTER_OTLP_HEADERS="api-key=HIDDEN1,HIDDEN2,x=HIDDEN3=",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://user:HIDDEN4@collector:4317",
        OTEL_SERVICE_NAME=os.fsdecode(b"a\nb\xffc"),
    )
    assert "HIDDEN" not in shown.stdout + shown.stderr
    assert "api-key=" in shown.stdout
    assert "collector:4317" in shown.stdout
    assert "a\\nb\\udcffc" in shown.stdout

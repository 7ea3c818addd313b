"""What is said of a process's configuration, and what a process says of itself when it starts."""

import os
import pty
import subprocess
import sys

import pytest

from gymlog import notices
from gymlog.explain import DEFAULT_SOURCE, explain
from gymlog.settings import FIELDS, SETTINGS

ON = {"NEMO_GYM_OTEL_ENABLED": "1"}

CLEAN = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("OTEL_", "NEMO_", "GYMLOG_", "SLURM_"))
}


@pytest.fixture(autouse=True)
def _fresh():
    notices.reset()
    yield
    notices.reset()


def row(environ, name):
    """Return the explanation of one setting."""
    (found,) = [one for one in explain(environ).settings if one.name == name]
    return found


def test_every_setting_is_explained():
    """In an empty environment each has its default, and nothing is ignored."""
    rows = explain({}).settings
    assert [one.name for one in rows] == [setting.name for setting in SETTINGS]
    assert {one.source for one in rows} == {DEFAULT_SOURCE}
    assert all(one.ignored == [] and one.meaning for one in rows)
    text = explain({}).as_text()
    assert all(f"\n{setting.name} " in text for setting in SETTINGS)


SAMPLES = ("1", "true", "5000", "console", "full", "always_on", "grpc")
"""At least one of them is accepted by any setting."""


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_source_is_the_variable_that_sets_it(setting):
    """Each of its variables alone; the first of all of them; the next when one is not accepted."""
    text = next(one for one in SAMPLES if not setting.ignored({setting.name: one}))
    for variable in setting.variables:
        assert row({variable: text}, setting.name).source == variable
    every = dict.fromkeys(setting.variables, text)
    assert row(every, setting.name).source == setting.name
    bad = "\N{SNOWMAN}"
    if setting.ignored({setting.name: bad}):
        explained = row(every | {setting.name: bad}, setting.name)
        assert explained.source == (setting.variables[1:] or (DEFAULT_SOURCE,))[0]
        assert [(one.variable, one.text) for one in explained.ignored] == [(setting.name, bad)]


@pytest.mark.parametrize(
    ("environ", "is_on", "why"),
    [
        ({}, False, "none of NEMO_GYM_OTEL_ENABLED, NEMO_LENS_ENABLED says on"),
        ({"NEMO_GYM_OTEL_ENABLED": "maybe"}, False, "none of NEMO_GYM_OTEL_ENABLED, "),
        (ON, True, "NEMO_GYM_OTEL_ENABLED=1"),
        ({"NEMO_LENS_ENABLED": "yes"}, True, "NEMO_LENS_ENABLED=yes"),
        (
            {"NEMO_GYM_OTEL_ENABLED": "off", "NEMO_LENS_ENABLED": "1"},
            False,
            "NEMO_GYM_OTEL_ENABLED=off",
        ),
        (ON | {"OTEL_SDK_DISABLED": "True"}, False, "OTEL_SDK_DISABLED=True"),
        (ON | {"OTEL_SDK_DISABLED": "1"}, True, "NEMO_GYM_OTEL_ENABLED=1"),
        (
            {"NEMO_LENS_ENABLED": "0", "OTEL_SDK_DISABLED": "true"},
            False,
            "NEMO_LENS_ENABLED=0",
        ),
    ],
)
def test_whether_it_is_on_and_why(environ, is_on, why):
    """The variable that decides is named."""
    explanation = explain(environ)
    assert explanation.is_on is is_on
    assert explanation.why.startswith(why)


@pytest.mark.parametrize(
    ("environ", "name", "source"),
    [
        ({}, "nemo-gym/{server}", DEFAULT_SOURCE),
        ({"OTEL_SERVICE_NAME": "a"}, "a/{server}", "OTEL_SERVICE_NAME"),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=b"},
            "b/{server}",
            "OTEL_RESOURCE_ATTRIBUTES",
        ),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=b", "OTEL_SERVICE_NAME": "a"},
            "a/{server}",
            "OTEL_SERVICE_NAME",
        ),
        ({"NEMO_GYM_OTEL_SERVICE_NAME_PER_SERVER": "0"}, "nemo-gym", DEFAULT_SOURCE),
    ],
)
def test_the_service_name_of_a_server(environ, name, source):
    """And where it comes from."""
    assert explain(environ).service_name == name
    assert row(environ, FIELDS["service_name"].name).source == source


def test_groups_sampler_and_run_id():
    """What the spec opens, and the ratio of a sampler that has one."""
    explanation = explain(
        ON
        | {
            "NEMO_GYM_OTEL_SPAN_GROUPS": "verify,agent",
            "OTEL_TRACES_SAMPLER": "TraceIdRatio",
            "OTEL_TRACES_SAMPLER_ARG": "0.25",
            "NEMO_LENS_RUN_ID": "r1",
        }
    )
    assert explanation.span_groups == ["agent", "verify"]
    assert explanation.sampler == "traceidratio, ratio 0.25"
    assert explanation.run_id == "r1"
    assert explain(ON | {"NEMO_GYM_OTEL_TRACES_ENABLED": "0"}).span_groups == []


# The sentence of a process that starts.


def start(environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    """Run a process that switches telemetry on; return what it says on stderr."""
    program = (
        "import sys, gymlog\n"
        "gymlog.init_telemetry('agent')\n"
        "gymlog.init_telemetry('agent')\n"
        "assert gymlog.get_telemetry() or 'pydantic' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=CLEAN | environ, stdout=stdout, stderr=stderr, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stderr


VERBOSE = {"GYMLOG_VERBOSE": "1"}


def test_a_process_says_once_what_is_on(tmp_path):
    """On and why, groups, the file, run id and service name."""
    environ = {"NEMO_GYM_OTEL_SPAN_GROUPS": "server,rollout", "NEMO_GYM_OTEL_RUN_ID": "r7"}
    path = tmp_path / "agent.log"
    with path.open("w") as log:
        said = start(ON | VERBOSE | environ, stdout=log)
    assert said == (
        "gymlog: telemetry is on: NEMO_GYM_OTEL_ENABLED=1; span groups rollout, server; "
        f"lines go to {path}; run id r7; service name nemo-gym/agent\n"
    )


@pytest.mark.parametrize(
    ("exporter", "where"),
    [
        ("console,otlp", "lines go to a pipe, records to OTLP too; "),
        ("otlp", "process lines go to a pipe, the other records to OTLP; "),
    ],
)
def test_a_process_says_that_it_sends(exporter, where):
    """Also where nothing listens: that is told apart."""
    environ = {
        "NEMO_GYM_OTEL_EXPORTER": exporter,
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "NEMO_GYM_OTEL_METRICS_ENABLED": "0",
    }
    assert where in start(ON | VERBOSE | environ)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "none of NEMO_GYM_OTEL_ENABLED, NEMO_LENS_ENABLED says on"),
        ({"NEMO_LENS_ENABLED": "0"}, "NEMO_LENS_ENABLED=0"),
        (ON | {"OTEL_SDK_DISABLED": "true"}, "OTEL_SDK_DISABLED=true"),
    ],
)
def test_a_process_says_why_it_is_off(environ, why):
    """And loads nothing for it."""
    assert start(VERBOSE | environ) == f"gymlog: telemetry is off: {why}\n"


@pytest.mark.parametrize("verbose", [{}, {"GYMLOG_VERBOSE": "0"}])
def test_a_process_in_a_pipe_says_nothing(verbose):
    """A log is no place for words nobody asked for."""
    assert start(ON | verbose) == start(verbose) == ""


@pytest.mark.parametrize(
    ("verbose", "is_said"), [({}, True), ({"GYMLOG_VERBOSE": "0"}, False), (VERBOSE, True)]
)
def test_a_process_on_a_terminal(verbose, is_said):
    """It speaks unless told not to; the lines go to the pipe."""
    terminal, side = pty.openpty()
    try:
        start(ON | verbose, stderr=side)
        os.write(side, b"end\n")
        said = ""
        while "end" not in said:
            said += os.read(terminal, 10_000).decode()
    finally:
        os.close(side)
        os.close(terminal)
    assert ("telemetry is on" in said, "lines go to a pipe" in said) == (is_said, is_said)

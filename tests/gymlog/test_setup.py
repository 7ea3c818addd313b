"""Switching telemetry on and off, in processes of their own: what is written, said and returned."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import Any, NamedTuple

import pytest

from gymlog import get_telemetry, shutdown_telemetry

Record = dict[str, Any]  # Any: one JSON value, see gymlog.record

ON = {"NEMO_GYM_OTEL_ENABLED": "1"}

CLEAN = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("OTEL_", "NEMO_", "GYMLOG_", "SLURM_"))
}


class Outcome(NamedTuple):
    """What a process left behind."""

    records: list[Record]
    words: list[str]
    """Lines of stderr."""

    def of_type(self, record_type: str) -> list[Record]:
        """Return the records of one type."""
        return [record for record in self.records if record["record_type"] == record_type]

    @property
    def spans(self) -> dict[str, Record]:
        """The spans by name."""
        return {record["name"]: record for record in self.of_type("span")}

    @property
    def states(self) -> list[str]:
        """The states of the process records."""
        return [record["state"] for record in self.of_type("process")]


def run(program: str, environ: dict[str, str] = ON, *, returns: int = 0) -> Outcome:
    """Run a program that imports gymlog; every line of its stdout is a record."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import gymlog\n{textwrap.dedent(program)}"],
        env=CLEAN | environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == returns, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["seq"] for record in records] == list(range(len(records)))
    return Outcome(records, done.stderr.splitlines())


ONE_SPAN = """
gymlog.init_telemetry()
with gymlog.span_cm("work", a=1, b=2, c=3) as span:
    span.add_event("e", {"a": 1, "b": 2})
    span.add_event("e")
"""


# On and off.


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NEMO_GYM_OTEL_ENABLED": "0", "NEMO_LENS_ENABLED": "1"},
        {**ON, "OTEL_SDK_DISABLED": "TRUE"},
    ],
)
def test_off_is_off(environ: dict[str, str]) -> None:
    """No line, no word, no handle; every function can be called."""
    outcome = run(
        """
        assert gymlog.init_telemetry("server") is None
        assert gymlog.get_telemetry() is None
        with gymlog.managed_span("rollout", "a") as span: assert span is None
        gymlog.shutdown_telemetry()
        assert gymlog.init_telemetry() is None
        """,
        environ,
    )
    assert outcome == ([], [])


def test_a_process_from_start_to_stop() -> None:
    """`started`, the spans of every tracer, `stopped`; a second init and shutdown do nothing."""
    outcome = run(
        """
        from opentelemetry import trace
        early = trace.get_tracer("early", "1")    # before there is a provider
        handle = gymlog.init_telemetry("agent_server", "responses_api_agents")
        assert handle is gymlog.get_telemetry() is gymlog.init_telemetry("another")
        assert handle.is_exporting and handle.tracer_provider is trace.get_tracer_provider()
        with gymlog.managed_span("rollout", "own"):
            early.start_span("theirs").end()
            handle.tracer.start_span("by hand").end()
            handle.meter.create_counter("c").add(1)
        gymlog.shutdown_telemetry(timeout_ms=100)
        gymlog.shutdown_telemetry()
        assert gymlog.get_telemetry() is None
        assert not gymlog.is_span_group_enabled("rollout")
        with gymlog.span_cm("late") as span: assert span is None
        assert gymlog.init_telemetry() is None
        """
    )
    assert outcome.words == []
    names = [record.get("state", record.get("name")) for record in outcome.records]
    assert names[:4] == ["started", "theirs", "by hand", "own"]
    assert "c" in names[4:-1]  # beside what the process says of itself
    assert names[-1] == "stopped"
    assert outcome.spans["theirs"]["parent_span_id"] == outcome.spans["own"]["span_id"]
    assert outcome.spans["theirs"]["scope"] == {"name": "early", "version": "1"}
    started, stopped = outcome.of_type("process")
    assert started["resource"] == stopped["resource"]
    assert (stopped["spans_written"], stopped["open_spans"], stopped["records_dropped"]) == (
        3,
        0,
        0,
    )
    assert {record["resource"]["attributes"]["service.name"] for record in outcome.records} == {
        "nemo-gym/agent_server"
    }


def test_the_end_of_the_process_is_a_clean_stop() -> None:
    """Nobody has to call `shutdown_telemetry`; what is still open is named."""
    outcome = run(
        """
        handle = gymlog.init_telemetry()
        span = handle.tracer.start_span("open")
        """
    )
    assert [record["record_type"] for record in outcome.records] == [
        "process", "span_start", "process",
    ]  # fmt: skip
    assert outcome.states == ["started", "stopped"]


def test_sigterm_is_a_clean_stop_and_still_ends_the_process() -> None:
    """By the signal, as whoever sent it expects."""
    outcome = run(
        """
        import os, signal
        gymlog.init_telemetry().tracer.start_span("open")
        os.kill(os.getpid(), signal.SIGTERM)
        """,
        returns=-signal.SIGTERM,
    )
    assert outcome.states == ["started", "stopped"]
    assert [record["name"] for record in outcome.of_type("span_start")] == ["open"]


@pytest.mark.parametrize(
    ("setup", "environ"),
    [
        ("signal.signal(signal.SIGTERM, lambda *_: os._exit(7))", {}),
        ("", {"GYMLOG_HANDLE_SIGTERM": "0"}),
    ],
)
def test_sigterm_is_left_to_who_handles_it(setup: str, environ: dict[str, str]) -> None:
    """A handler that is there before stays, and gymlog's can be declined."""
    outcome = run(
        f"""
        import os, signal
        {setup}
        gymlog.init_telemetry()
        os.kill(os.getpid(), signal.SIGTERM)
        """,
        ON | environ,
        returns=7 if setup else -signal.SIGTERM,
    )
    assert outcome.states == ["started"]


def test_many_threads_get_one_handle() -> None:
    """And the process introduces itself once."""
    outcome = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(8) as pool:
            handles = list(pool.map(lambda _: gymlog.init_telemetry(), range(32)))
        assert handles == [gymlog.get_telemetry()] * 32 != [None] * 32
        """
    )
    assert outcome.states == ["started", "stopped"]


# Beside others.


def test_another_provider_stays_and_gymlog_still_writes() -> None:
    """The other one is named; spans of either are children of the other's."""
    outcome = run(
        """
        from opentelemetry import propagate, trace
        from opentelemetry.sdk.trace import TracerProvider
        other = TracerProvider(shutdown_on_exit=False)
        trace.set_tracer_provider(other)
        before = propagate.get_global_textmap()
        assert gymlog.init_telemetry() is not None
        assert trace.get_tracer_provider() is other
        assert propagate.get_global_textmap() is before
        with trace.get_tracer("library").start_as_current_span("theirs") as theirs:
            with gymlog.span_cm("own", trace_id=f"{theirs.context.trace_id:032x}") as own:
                child = trace.get_tracer("library").start_span("child")
                assert child.parent == own.get_span_context()
        """
    )
    (word,) = outcome.words
    assert "opentelemetry.sdk.trace.TracerProvider" in word
    assert word.startswith("gymlog: OpenTelemetry's global tracer provider is already a ")
    assert list(outcome.spans) == ["own"]
    assert outcome.spans["own"]["trace_id"] == outcome.spans["own"]["attributes"]["trace_id"]


def test_without_traces_no_span_is_written() -> None:
    """Not by a call site, a library, or the handle's own tracer; the process still reports."""
    outcome = run(
        """
        from opentelemetry import trace
        handle = gymlog.init_telemetry()
        assert not handle.is_exporting
        with gymlog.managed_span("rollout", "a") as span: assert span is None
        trace.get_tracer("library").start_span("b").end()
        handle.tracer.start_span("c").end()
        """,
        {**ON, "NEMO_GYM_OTEL_TRACES_ENABLED": "0"},
    )
    assert outcome.words == []
    assert [record["record_type"] for record in outcome.records] == ["process", "process"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("gymlog.init_telemetry(resource_attributes=5)", "telemetry stays off: TypeError: "),
        (
            "import sys; sys.modules['pydantic'] = None; gymlog.init_telemetry()",
            "telemetry stays off: ModuleNotFoundError: ",
        ),
    ],
)
def test_what_goes_wrong_is_one_line_and_never_raised(program: str, words: str) -> None:
    """The host goes on without telemetry."""
    outcome = run(f"{program}\nassert gymlog.get_telemetry() is None")
    assert outcome.records == []
    (line,) = outcome.words
    assert line.startswith(f"gymlog: {words}")


# What the environment sets.


def test_bad_values_are_told_and_the_defaults_stand() -> None:
    """Every one of them, each in one line, and telemetry is on."""
    bad = {
        "NEMO_GYM_OTEL_EXPORTER": "pigeon",
        "NEMO_GYM_OTEL_TRACES_ENABLED": "maybe",
        "NEMO_LENS_METRICS_ENABLED": "perhaps",
        "NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS": "0",
        "OTEL_SDK_DISABLED": "1",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "many",
        "OTEL_SPAN_EVENT_COUNT_LIMIT": "1.5",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "-3",
        "OTEL_TRACES_SAMPLER": "sometimes",
        "GYMLOG_LINE_MAX_BYTES": "12",
        "GYMLOG_WRITE_WAIT_SECONDS": "-1",
        "GYMLOG_SPAN_START_AFTER_SECONDS": "soon",
        "GYMLOG_PROCESS_INTERVAL_SECONDS": "0",
        "GYMLOG_HANDLE_SIGTERM": "perhaps",
    }
    outcome = run(ONE_SPAN, ON | bad)
    for name, value in bad.items():
        (line,) = [word for word in outcome.words if word.startswith(f"gymlog: {name}={value!r} ")]
        assert "accepted: " in line
        assert "e+" not in line
    assert len(outcome.words) == len(bad)
    assert outcome.spans["work"]["attributes"] == {"a": 1, "b": 2, "c": 3}
    assert len(outcome.spans["work"]["events"]) == 2


def test_limits_are_opentelemetrys_variables() -> None:
    """A span's own variable counts before the general one."""
    outcome = run(
        ONE_SPAN,
        {
            **ON,
            "OTEL_ATTRIBUTE_COUNT_LIMIT": "1",
            "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "2",
            "OTEL_SPAN_EVENT_COUNT_LIMIT": "1",
        },
    )
    span = outcome.spans["work"]
    assert span["attributes"] == {"a": 1, "b": 2}
    assert span["events"][0]["attributes"] == {"a": 1}
    assert span["dropped_attributes_count"] == span["dropped_events_count"] == 1


def test_an_unknown_span_group_is_told_with_the_nearest_known() -> None:
    """The others of the list are open."""
    outcome = run(
        """
        gymlog.init_telemetry()
        for group in ("verify", "rollout", "job"):
            with gymlog.managed_span(group, group): pass
        """,
        {**ON, "NEMO_LENS_SPAN_GROUPS": "Verify, defalt"},
    )
    assert list(outcome.spans) == ["verify"]
    (line,) = outcome.words
    assert "'defalt'" in line
    assert "did you mean 'default'?" in line


def test_a_sampler_of_the_environment() -> None:
    """Nothing of an unsampled root is written."""
    outcome = run(ONE_SPAN, {**ON, "OTEL_TRACES_SAMPLER": "parentbased_always_off"})
    assert outcome.of_type("span") == []
    assert outcome.words == []


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ["other"]),
        ({"GYMLOG_SILENT_SCOPES": "other, third"}, ["fastapi"]),
        ({"GYMLOG_SILENT_SCOPES": ""}, ["fastapi", "other"]),
    ],
)
def test_which_libraries_are_silent(environ: dict[str, str], names: list[str]) -> None:
    """FastAPI's own spans repeat the ingress's."""
    outcome = run(
        """
        from opentelemetry import trace
        gymlog.init_telemetry()
        for name in ("fastapi", "other"): trace.get_tracer(name).start_span(name).end()
        """,
        ON | environ,
    )
    assert list(outcome.spans) == names


def test_spans_can_be_announced_at_once() -> None:
    """GYMLOG_SPAN_START_AFTER_SECONDS=0."""
    outcome = run(ONE_SPAN, {**ON, "GYMLOG_SPAN_START_AFTER_SECONDS": "0"})
    assert [record["record_type"] for record in outcome.records] == [
        "process", "span_start", "span", "process",
    ]  # fmt: skip


def test_the_resource_is_what_environment_caller_and_machine_say() -> None:
    """In the process records whole; elsewhere name and instance only."""
    outcome = run(
        """
        gymlog.init_telemetry("math", "resources_servers", {"team": "a", "k": "caller", "n": None})
        gymlog.span_cm("work").__enter__().end()
        """,
        {
            **ON,
            "OTEL_SERVICE_NAME": "gym",
            "OTEL_RESOURCE_ATTRIBUTES": "k=environment,place=rack%201,service.name=ignored,bad",
            "NEMO_LENS_RUN_ID": "run-1",
        },
    )
    whole = outcome.of_type("process")[0]["resource"]["attributes"]
    expected = {
        "service.name": "gym/math",
        "nemo.gym.service_group": "gym",
        "nemo.gym.server.name": "math",
        "nemo.gym.server.type": "resources_servers",
        "nemo.run.id": "run-1",
        "team": "a", "k": "caller", "place": "rack 1",
        "telemetry.sdk.name": "gymlog", "telemetry.sdk.language": "python",
    }  # fmt: skip
    assert whole | expected == whole
    assert whole.keys() >= {
        "service.instance.id", "process.pid", "process.parent_pid", "host.name",
        "telemetry.sdk.version",
    }  # fmt: skip
    assert whole["process.parent_pid"] == os.getpid()
    assert "n" not in whole
    assert outcome.spans["work"]["resource"]["attributes"] == {
        key: whole[key] for key in ("service.name", "service.instance.id")
    }
    (line,) = outcome.words
    assert "OTEL_RESOURCE_ATTRIBUTES has 'bad'" in line


def test_a_service_name_among_the_resource_attributes_counts() -> None:
    """The specification: OTEL_SERVICE_NAME first, then this, then the default."""
    outcome = run(ONE_SPAN, {**ON, "OTEL_RESOURCE_ATTRIBUTES": "service.name=mine"})
    assert outcome.spans["work"]["resource"]["attributes"]["service.name"] == "mine"


def test_functions_of_a_process_that_never_switched_on_do_nothing() -> None:
    """As in the tests' own process."""
    assert get_telemetry() is None
    shutdown_telemetry()
    shutdown_telemetry(timeout_ms=1)


def test_what_fails_at_the_end_does_not_keep_the_last_lines():
    """Whoever asked to be called first may fail, or ask for another call."""
    done = run("""
        from gymlog.setup import before_shutdown
        def fail(cause):
            before_shutdown(print)
            raise RuntimeError("not now")
        gymlog.init_telemetry()
        before_shutdown(fail)
        gymlog.shutdown_telemetry()
    """)
    assert done.states == ["started", "stopped"]
    assert any("RuntimeError: not now" in words for words in done.words)

"""TelemetryConfig: its defaults, and for every field which of environment and block counts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

from gymlog import (
    TELEMETRY_KEY_NAME,
    MemoryProfilingConfig,
    TelemetryConfig,
    configure_telemetry_env,
    memory_profiling_config_from_env,
    notices,
    telemetry_config_from_global_config,
)
from gymlog.config import telemetry_config_from_environment


class Setting(NamedTuple):
    """One field: its variables in the order they count, and three values told apart."""

    field: str
    variables: tuple[str, ...]
    block: object
    texts: tuple[str, ...]
    """One for each variable."""
    values: tuple[object, ...]
    """What the texts mean."""
    bad: str | None = None

    def of(self, config: TelemetryConfig) -> object:
        """Read the field."""
        value: Any = config  # Any: a field of a field
        for part in self.field.split("."):
            value = getattr(value, part)
        return value

    def config(self) -> TelemetryConfig:
        """Return a block that sets this field only."""
        outer, _, inner = self.field.partition(".")
        return TelemetryConfig(**{outer: {inner: self.block} if inner else self.block})  # type: ignore[arg-type]  # of whichever field


def both(suffix: str) -> tuple[str, str]:
    return f"NEMO_GYM_OTEL_{suffix}", f"NEMO_LENS_{suffix}"


def flag(field: str, default: bool) -> Setting:
    """Return the setting of a boolean: the block says what the default does not, and so on."""
    texts = ("yes", "off") if default else ("0", "on")
    return Setting(field, both(field.upper()), not default, texts, (default, not default), "maybe")


SETTINGS = [
    flag("enabled", default=False),
    flag("service_name_per_server", default=True),
    flag("traces_enabled", default=True),
    flag("metrics_enabled", default=True),
    flag("logs_enabled", default=False),
    flag("event_loop_task_count", default=False),
    Setting("span_groups", both("SPAN_GROUPS"), "per_rollout", ("all", "job"), ("all", "job")),
    Setting(
        "exporter",
        both("EXPORTER"), "other", ("console", "CONSOLE"), ("console", "console"), "file",
    ),
    Setting("run_id", both("RUN_ID"), "block", ("gym", "lens"), ("gym", "lens")),
    Setting(
        "event_loop_sample_interval_seconds",
        both("EVENT_LOOP_SAMPLE_INTERVAL_SECONDS"),
        3.0, ("4", "0.5"), (4.0, 0.5), "0",
    ),
    Setting("service_name", ("OTEL_SERVICE_NAME",), "block", ("gym",), ("gym",)),
    Setting("otlp_endpoint", ("OTEL_EXPORTER_OTLP_ENDPOINT",), "b:1", ("g:1",), ("g:1",)),
    Setting(
        "otlp_protocol",
        ("OTEL_EXPORTER_OTLP_PROTOCOL",), "grpc", ("http/protobuf",), ("http/protobuf",),
    ),
    Setting("otlp_headers", ("OTEL_EXPORTER_OTLP_HEADERS",), "a=b", ("a=g",), ("a=g",)),
    Setting(
        "memory_profiling.enabled",
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED",), True, ("off",), (False,), "maybe",
    ),
    Setting(
        "memory_profiling.interval_seconds",
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS",), 3.0, ("4",), (4.0,), "-1",
    ),
]  # fmt: skip

each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.field)


@pytest.fixture(autouse=True)
def notices_start_anew() -> Iterator[None]:
    notices.reset()
    yield
    notices.reset()


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment of the test's own, in place of the process's."""
    own: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", own)
    return own


# Defaults, and the block.


def test_defaults_are_the_published_ones() -> None:
    """But for the exporter: the log is the durable channel here."""
    assert TelemetryConfig().model_dump() == {
        "enabled": False,
        "service_name": "nemo-gym",
        "service_name_per_server": True,
        "span_groups": "default",
        "traces_enabled": True,
        "metrics_enabled": True,
        "logs_enabled": False,
        "exporter": "console",
        "otlp_endpoint": None,
        "otlp_protocol": None,
        "otlp_headers": None,
        "run_id": None,
        "memory_profiling": {"enabled": False, "interval_seconds": 1.0},
        "event_loop_sample_interval_seconds": 1.0,
        "event_loop_task_count": False,
    }


def test_every_field_is_in_the_table() -> None:
    """A new field comes with its variables and its precedence."""
    fields = {field for field in TelemetryConfig.model_fields if field != "memory_profiling"}
    fields |= {f"memory_profiling.{field}" for field in MemoryProfilingConfig.model_fields}
    assert {setting.field for setting in SETTINGS} == fields


@pytest.mark.parametrize("config", [None, {}, {"other": 1}, {TELEMETRY_KEY_NAME: None}])
def test_no_block_is_all_defaults(config: object) -> None:
    """Telemetry is off then."""
    assert telemetry_config_from_global_config(config) == TelemetryConfig()


def test_a_block_is_read_from_any_mapping() -> None:
    """Also nested ones that are no dict, as configuration libraries have them."""
    memory = MappingProxyType({"enabled": True})
    block = MappingProxyType({"enabled": True, "service_name": "gym", "memory_profiling": memory})
    config = telemetry_config_from_global_config(MappingProxyType({"telemetry": block}))
    assert config == TelemetryConfig(
        enabled=True, service_name="gym", memory_profiling=MemoryProfilingConfig(enabled=True)
    )
    assert telemetry_config_from_global_config({"telemetry": config}) == config


@pytest.mark.parametrize(
    "block",
    [
        "on",
        ["enabled"],
        {"enabled": "maybe"},
        {"event_loop_sample_interval_seconds": 0},
        {"memory_profiling": {"interval_seconds": -1}},
        {"memory_profiling": True},
        {"service_name": None},
    ],
)
def test_a_block_of_wrong_types_is_an_error_that_says_where(block: object) -> None:
    """pydantic's ValidationError, as published."""
    with pytest.raises(ValidationError) as caught:
        telemetry_config_from_global_config({"telemetry": block})
    if isinstance(block, dict):
        assert next(iter(block)) in str(caught.value)


def test_an_unknown_key_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    """Once each, also in the inner block; fields of older releases are let pass."""
    block = {
        "servce_name": "x",
        "instrument_aiohttp": False, "export_strategy": "all_ranks", "export_rank": 0,
        "memory_profiling": {"intervall_seconds": 2},
    }  # fmt: skip
    for _ in range(2):
        telemetry_config_from_global_config({"telemetry": block})
    assert sorted(capfd.readouterr().err.splitlines()) == [
        "gymlog: telemetry.memory_profiling.intervall_seconds is not known and has no effect",
        "gymlog: telemetry.servce_name is not known and has no effect",
    ]


# Precedence: NEMO_GYM_OTEL_* over NEMO_LENS_* over the block, for every field.


@each_setting
def test_the_block_stands_when_the_environment_says_nothing(setting: Setting) -> None:
    """Blank variables say nothing."""
    blank = dict.fromkeys(setting.variables, " ")
    for environ in ({}, blank):
        assert (
            setting.of(telemetry_config_from_environment(setting.config(), environ))
            == setting.block
        )


@each_setting
def test_the_environment_counts_before_the_block(setting: Setting) -> None:
    """Each variable by itself, and the first of them when several are set."""
    every = dict(zip(setting.variables, setting.texts, strict=True))
    for (variable, text), value in zip(every.items(), setting.values, strict=True):
        config = telemetry_config_from_environment(setting.config(), {variable: text})
        assert setting.of(config) == value
    assert (
        setting.of(telemetry_config_from_environment(setting.config(), every)) == setting.values[0]
    )


@each_setting
def test_a_field_touches_no_other(setting: Setting) -> None:
    """Its variables set this field and leave the rest at its default."""
    every = dict(zip(setting.variables, setting.texts, strict=True))
    defaults = TelemetryConfig()
    config = telemetry_config_from_environment(defaults, every)
    others = [other for other in SETTINGS if other.field != setting.field]
    assert [other.of(config) for other in others] == [other.of(defaults) for other in others]
    assert defaults == TelemetryConfig(), "what was passed in is not changed"


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if one.bad], ids=lambda setting: setting.field
)
def test_a_bad_variable_is_told_and_the_block_stands(
    setting: Setting, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line that names the variable, the value and what is accepted."""
    assert setting.bad is not None
    for variable in setting.variables:
        config = telemetry_config_from_environment(setting.config(), {variable: setting.bad})
        assert setting.of(config) == setting.block
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"gymlog: {variable}={setting.bad!r} is not accepted and ignored; ")
        assert line.split("accepted: ")[1]


@each_setting
def test_what_is_handed_on_means_the_same_in_a_child(
    setting: Setting, environ: dict[str, str]
) -> None:
    """Block only, each variable only, all of them: parent and child see one configuration."""
    every = dict(zip(setting.variables, setting.texts, strict=True))
    for given in ({}, *({name: text} for name, text in every.items()), every):
        environ.clear()
        environ.update(given)
        seen = telemetry_config_from_environment(setting.config(), dict(environ))
        environ.setdefault("NEMO_GYM_OTEL_ENABLED", "1")
        configure_telemetry_env(setting.config())
        if setting.field not in ("enabled", "exporter"):
            # The child has no block of its own.
            assert setting.of(telemetry_config_from_environment(None, environ)) == setting.of(seen)
        assert {name: environ[name] for name in given} == given, "what was set stays"


def test_lenss_variables_are_not_shadowed_by_defaults(environ: dict[str, str]) -> None:
    """The released package turned these into its own defaults, in silence."""
    environ.update(
        NEMO_LENS_ENABLED="1", NEMO_LENS_SPAN_GROUPS="all", NEMO_LENS_LOGS_ENABLED="1",
        NEMO_LENS_METRICS_ENABLED="0",
    )  # fmt: skip
    configure_telemetry_env(TelemetryConfig())
    config = telemetry_config_from_environment(None, environ)
    assert (config.enabled, config.span_groups) == (True, "all")
    assert (config.logs_enabled, config.metrics_enabled) == (True, False)


def test_memory_profiling_by_itself(environ: dict[str, str]) -> None:
    """The published function: defaults given, variables over them."""
    environ["NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS"] = "2.5"
    defaults = MemoryProfilingConfig(enabled=True, interval_seconds=9)
    found = memory_profiling_config_from_env(defaults)
    assert found == MemoryProfilingConfig(enabled=True, interval_seconds=2.5)
    assert defaults.interval_seconds == 9


CHILD = """
from gymlog.config import telemetry_config_from_environment
print(telemetry_config_from_environment().model_dump_json())
"""

PARENT = f"""
import subprocess, sys
from gymlog import TelemetryConfig, configure_telemetry_env
run_id = configure_telemetry_env(TelemetryConfig.model_validate_json(sys.argv[1]))
assert run_id
subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
"""


@pytest.mark.parametrize("source", ["block", "NEMO_LENS_", "NEMO_GYM_OTEL_"])
def test_every_field_reaches_a_real_child(source: str) -> None:
    """Through `configure_telemetry_env` and an inherited environment, from each of the sources."""
    environ = {
        key: value for key, value in os.environ.items() if "OTEL" not in key and "NEMO" not in key
    }
    config = TelemetryConfig(enabled=True).model_dump()
    expected = dict(config)

    def put(into: dict[str, Any], field: str, value: object) -> None:  # Any: values of all fields
        outer, _, inner = field.partition(".")
        into[outer] = {**into[outer], inner: value} if inner else value

    for setting in SETTINGS:
        if setting.field in ("enabled", "exporter"):
            continue
        put(config, setting.field, setting.block)
        put(expected, setting.field, setting.block)
        for variable, text, value in zip(
            setting.variables, setting.texts, setting.values, strict=True
        ):
            if variable.startswith(source):
                environ[variable] = text
                put(expected, setting.field, value)
    done = subprocess.run(
        [sys.executable, "-c", PARENT, TelemetryConfig(**config).model_dump_json()],
        env=environ, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    assert json.loads(done.stdout) == expected

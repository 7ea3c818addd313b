"""Settings from the environment: which variable counts, what is accepted, what is said if not."""

import math
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import is_telemetry_env_enabled, is_telemetry_metrics_enabled, notices
from gymlog.environment import (
    NotAcceptedError,
    as_bool,
    as_choices,
    as_count,
    as_number,
    as_specified_bool,
    as_text,
    read,
    read_setting,
    variables_of,
)

GYM, LENS = variables_of("X")

Parse = Callable[[str], object]


@pytest.fixture(autouse=True)
def notices_start_anew() -> Iterator[None]:
    """Each test hears what is said once per process."""
    notices.reset()
    yield
    notices.reset()


# Which variable counts.


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({LENS: "lens"}, "lens"),
        ({GYM: "gym"}, "gym"),
        ({GYM: "gym", LENS: "lens"}, "gym"),
        ({GYM: "", LENS: "lens"}, "lens"),
        ({GYM: " \t", LENS: " lens "}, "lens"),
        ({GYM: "", LENS: ""}, None),
    ],
)
def test_gyms_variable_counts_before_lenss(environ: dict[str, str], expected: str | None) -> None:
    """A blank one counts as unset; spaces around a value are not part of it."""
    assert read_setting("X", as_text, environ) == expected


def test_a_bad_value_does_not_hide_the_next_variable(capfd: pytest.CaptureFixture[str]) -> None:
    """It is ignored, so the other name's value stands, and it is told."""
    assert read_setting("X", as_bool, {GYM: "maybe", LENS: "yes"}) is True
    assert GYM in capfd.readouterr().err


def test_a_good_value_is_read_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    """Also when the variable behind it is bad."""
    assert read_setting("X", as_bool, {GYM: "1", LENS: "maybe"}) is True
    assert capfd.readouterr().err == ""


def test_the_processs_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read at every call, not at import."""
    monkeypatch.setenv(GYM, "7")
    assert read(GYM, as_count) == 7
    monkeypatch.delenv(GYM)
    assert read(GYM, as_count) is None


# What is accepted.

WORDS = {
    True: ["1", "true", "yes", "on", "TRUE", "Yes", "oN", " true "],
    False: ["0", "false", "no", "off", "FALSE", "No", "oFF", " 0 "],
}


@pytest.mark.parametrize(
    ("text", "value"), [(text, value) for value, texts in WORDS.items() for text in texts]
)
def test_a_boolean(text: str, value: bool) -> None:
    """The same eight words for every flag, in any case."""
    assert read("X", as_bool, {"X": text}) is value


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (as_specified_bool, "true", True),
        (as_specified_bool, "True", True),
        (as_specified_bool, "FALSE", False),
        (as_count, "0", 0),
        (as_count, "128", 128),
        (as_number(), "-1.5", -1.5),
        (as_number(0), "0", 0.0),
        (as_number(above=0), "1e-3", 0.001),
        (as_choices("a", "b"), "B", "b"),
        (as_choices("a", "b"), " b , A ,", "a,b"),
        (as_choices("a"), "a,a", "a"),
        (as_text, "anything = at, all", "anything = at, all"),
    ],
)
def test_a_good_value(
    parse: Parse, text: str, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    """Comes back parsed, and nothing is said."""
    parsed = read("X", parse, {"X": text})
    assert parsed == value
    assert type(parsed) is type(value)
    assert capfd.readouterr().err == ""


BAD: list[tuple[Parse, str, str]] = [
    (as_bool, "maybe", "1, true, yes, on, 0, false, no, off"),
    (as_bool, "2", "1, true, yes, on, 0, false, no, off"),
    (as_specified_bool, "1", "true, false"),
    (as_specified_bool, "yes", "true, false"),
    (as_count, "-1", "a whole number, 0 or more"),
    (as_count, "1.5", "a whole number, 0 or more"),
    (as_count, "٣", "a whole number, 0 or more"),
    (as_count, "9" * 19, "a whole number, 0 or more"),
    (as_number(), "soon", "a number"),
    (as_number(), "nan", "a number"),
    (as_number(), "1e999", "a number"),
    (as_number(0), "-0.1", "a number, 0 or more"),
    (as_number(4096), "4095", "a number, 4096 or more"),
    (as_number(above=0), "0", "a number above 0"),
    (as_choices("console"), "otlp", "console"),
    (as_choices("a", "b"), "a,c", "a, b, or several with commas"),
    (as_choices("a", "b"), ",", "a, b, or several with commas"),
]


@pytest.mark.parametrize(("parse", "text", "accepted"), BAD)
def test_a_bad_value_is_one_line_that_says_all(
    parse: Parse, text: str, accepted: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The variable, the value and what is accepted, on stderr, once per process."""
    for _ in range(3):
        assert read("SOME_VARIABLE", parse, {"SOME_VARIABLE": text}) is None
    out, err = capfd.readouterr()
    assert out == ""
    assert (
        err == f"gymlog: SOME_VARIABLE={text!r} is not accepted and ignored; accepted: {accepted}\n"
    )


def test_every_bad_variable_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    for name in ("ONE", "TWO"):
        read(name, as_bool, {name: "maybe"})
    assert [line.split("=")[0] for line in capfd.readouterr().err.splitlines()] == [
        "gymlog: ONE",
        "gymlog: TWO",
    ]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_is_a_value_or_not_accepted(text: str) -> None:
    """No parser raises anything else, whatever stands in the environment."""
    for parse in (
        as_bool,
        as_specified_bool,
        as_count,
        as_number(0),
        as_choices("a", "b"),
        as_text,
    ):
        try:
            value = parse(text)
        except NotAcceptedError:
            continue
        assert not isinstance(value, float) or math.isfinite(value)


# The two switches.


@pytest.mark.parametrize("name", ["NEMO_GYM_OTEL_ENABLED", "NEMO_LENS_ENABLED"])
@pytest.mark.parametrize(("text", "on"), [("1", True), ("off", False), ("", False)])
def test_telemetry_is_off_unless_switched_on(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, on: bool
) -> None:
    """By either variable."""
    for variable in variables_of("ENABLED"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, text)
    assert is_telemetry_env_enabled() is on


def test_gyms_switch_counts_before_lenss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off means off."""
    monkeypatch.setenv("NEMO_GYM_OTEL_ENABLED", "0")
    monkeypatch.setenv("NEMO_LENS_ENABLED", "1")
    assert not is_telemetry_env_enabled()


def test_a_switch_nobody_understands_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Telemetry stays off, and not in silence."""
    monkeypatch.delenv("NEMO_LENS_ENABLED", raising=False)
    monkeypatch.setenv("NEMO_GYM_OTEL_ENABLED", "maybe")
    assert not is_telemetry_env_enabled()
    assert "NEMO_GYM_OTEL_ENABLED='maybe' is not accepted" in capfd.readouterr().err


@pytest.mark.parametrize(("text", "on"), [(None, True), ("", True), ("0", False), ("yes", True)])
def test_metrics_are_on_unless_switched_off(
    monkeypatch: pytest.MonkeyPatch, text: str | None, on: bool
) -> None:
    """The other way round than telemetry itself."""
    for variable in variables_of("METRICS_ENABLED"):
        monkeypatch.delenv(variable, raising=False)
    if text is not None:
        monkeypatch.setenv("NEMO_LENS_METRICS_ENABLED", text)
    assert is_telemetry_metrics_enabled() is on


@pytest.mark.parametrize("parse", [as_count, as_number(), as_bool, as_choices("a")])
def test_an_endless_value_is_told_in_a_short_line(
    parse: Parse, capfd: pytest.CaptureFixture[str]
) -> None:
    """The variable comes first, so it is named whatever is cut."""
    assert read("X", parse, {"X": "9" * 100_000}) is None
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("gymlog: X='99")
    assert len(line) < 10_000

"""The table of settings: whole, true to what it sets, and read the same way everywhere."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gymlog
from gymlog import TelemetryConfig, channel, destinations, notices, record, service, settings
from gymlog.settings import FIELDS, SETTINGS, Setting


@pytest.fixture(autouse=True)
def _fresh():
    notices.reset()
    yield
    notices.reset()


def test_every_setting_is_in_the_table_once():
    """And none has a variable twice."""
    defined = [value for value in vars(settings).values() if isinstance(value, Setting)]
    assert {setting.name for setting in defined} <= {setting.name for setting in SETTINGS}
    names = [setting.name for setting in SETTINGS]
    assert len(set(names)) == len(names)
    for setting in SETTINGS:
        assert len(set(setting.variables)) == len(setting.variables)
        assert setting.meaning


def test_no_module_reads_a_variable_that_the_table_lacks():
    """Variables of ours and of OpenTelemetry's that stand alone in a text of the code."""
    table = {variable for setting in SETTINGS for variable in setting.variables}
    elsewhere = {
        node.value
        for path in Path(gymlog.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"(GYMLOG|OTEL|NEMO_GYM_OTEL|NEMO_LENS)_[A-Z_]*[A-Z]", node.value)
    }
    assert elsewhere - table == set()


def fields_of(config, prefix=""):
    """Return each field of the configuration by its name in the table."""
    found = {}
    for name in type(config).model_fields:
        value = getattr(config, name)
        inner = hasattr(value, "model_dump")
        found |= fields_of(value, f"{name}.") if inner else {prefix + name: value}
    return found


def test_every_field_of_the_configuration_has_its_setting():
    """With the same default."""
    assert fields_of(TelemetryConfig()) == {name: one.default for name, one in FIELDS.items()}


def test_defaults_and_names_that_stand_elsewhere_too_are_the_same():
    """Classes that can be used without the environment have defaults of their own."""
    assert settings.WRITE_WAIT_SECONDS.default == channel.DEFAULT_WAIT_SECONDS
    assert settings.PROCESS_INTERVAL_SECONDS.default == service.DEFAULT_PROCESS_INTERVAL_SECONDS
    assert settings.SPAN_START_AFTER_SECONDS.default == service.DEFAULT_SPAN_START_AFTER_SECONDS
    assert settings.LINE_MAX_BYTES.default == record.DEFAULT_LINE_MAX_BYTES
    assert settings.VALUE_LENGTH_LIMIT.default == record.DEFAULT_VALUE_MAX_CHARACTERS
    least = settings.LINE_MAX_BYTES.name
    assert settings.LINE_MAX_BYTES.value({least: str(record.PIPE_BUF)}) == record.PIPE_BUF
    assert settings.LINE_MAX_BYTES.ignored({least: str(record.PIPE_BUF - 1)})
    assert settings.PROPAGATE_TO.name == destinations.VARIABLE


def test_the_table_is_light():
    """`dataclasses` and what it loads would double the time of `import gymlog`."""
    program = (
        "import sys, gymlog; print('inspect' in sys.modules, 'gymlog.settings' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


TWO = settings.ATTRIBUTE_COUNT_LIMIT
FIRST, SECOND = TWO.variables


@pytest.mark.parametrize(
    ("environ", "found", "ignored"),
    [
        ({}, None, []),
        ({FIRST: " "}, None, []),
        ({SECOND: "2"}, (2, SECOND), []),
        ({FIRST: "1", SECOND: "2"}, (1, FIRST), []),
        ({FIRST: "", SECOND: "2"}, (2, SECOND), []),
        ({FIRST: "one", SECOND: "2"}, (2, SECOND), [FIRST]),
        ({FIRST: "1", SECOND: "two"}, (1, FIRST), [SECOND]),
        ({FIRST: "128"}, (128, FIRST), []),
        ({FIRST: "one", SECOND: "two"}, None, [FIRST, SECOND]),
    ],
)
def test_which_variable_counts(environ, found, ignored):
    """The first that is set and accepted; without one the default."""
    assert TWO.find(environ) == found
    assert TWO.value(environ) == (found[0] if found else 128)
    assert [one.variable for one in TWO.ignored(environ)] == ignored
    assert all(one.accepted == "a whole number, 0 or more" for one in TWO.ignored(environ))


@given(st.sampled_from(SETTINGS), st.text(max_size=20))
def test_any_text_is_a_value_or_is_ignored(setting, text):
    """Never both, never an error."""
    environ = {setting.name: text}
    is_set = setting.find(environ) is not None
    is_ignored = bool(setting.ignored(environ))
    assert not (is_set and is_ignored)
    assert is_set or is_ignored or not text.strip()


@pytest.mark.parametrize("text", ["", "  "])
def test_a_blank_list_of_silent_scopes_is_an_empty_one(text):
    """Everywhere else a blank value counts as unset."""
    name = settings.SILENT_SCOPES.name
    assert settings.SILENT_SCOPES.find({name: text}) == (frozenset(), name)
    assert settings.SILENT_SCOPES.value({}) == {"fastapi"}


@pytest.mark.parametrize("text", ["lean,full", "fuller", "nan"])
def test_a_choice_is_one_word(text):
    """A list of choices is not a choice."""
    assert settings.HTTP_ATTRIBUTES.find({settings.HTTP_ATTRIBUTES.name: text}) is None

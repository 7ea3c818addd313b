"""Exceptions: found again, without what they quote, and without a failure of our own."""

import dataclasses
import itertools

import numpy as np
import pytest

from gymlog.exceptions import exception_attributes, first_sight


def caught(raiser, *arguments):
    """Return the exception that a call raises."""
    try:
        raiser(*arguments)
    except BaseException as exception:
        return exception
    raise AssertionError("nothing was raised")


def fail(exception, cause=None):
    raise exception from cause


def deep(levels):
    if levels:
        deep(levels - 1)
    raise ValueError("bottom")


class HostileError(Exception):
    """Every method fails but those that raise it."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __setattr__(self, name, value):
        raise RuntimeError(name)

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None


@dataclasses.dataclass
class BatchError(Exception):
    rewards: np.ndarray


class SlottedError(Exception):
    __slots__ = ()


def test_type_message_and_place():
    """The three attributes of OpenTelemetry's conventions; frames name file, line, function."""
    attributes = exception_attributes(caught(fail, ValueError("wrong")))
    assert attributes["exception.type"] == "ValueError"
    assert attributes["exception.message"] == "wrong"
    frames = attributes["exception.stacktrace"].splitlines()
    assert [frame.rpartition(" in ")[2] for frame in frames] == ["caught", "fail"]
    assert all(__file__ in frame for frame in frames)


def test_a_type_of_a_module_has_its_module():
    """A class is found by its full name."""
    name = exception_attributes(BatchError(np.zeros(1)))["exception.type"]
    assert name == f"{__name__}.BatchError"


def test_no_source_line_and_no_variable_is_quoted():
    """Source text may hold secrets: `raise ValueError(key := "S3CRET")`."""
    attributes = exception_attributes(caught(lambda: fail(ValueError("x" + "S3CRET"[:0]))))
    assert "S3CRET" not in str(attributes)


def test_deep_recursion_keeps_the_innermost_frames():
    """Where it happened is at the end."""
    frames = exception_attributes(caught(deep, 500))["exception.stacktrace"].splitlines()
    assert len(frames) == 16
    assert all(frame.endswith("in deep") for frame in frames)


def test_a_message_is_cut_and_scrubbed():
    """What a model said does not fill the log, what a URL carries does not enter it."""
    message = exception_attributes(ValueError("GET http://u:S3CRET@h/p?q=S3CRET " + "x" * 10_000))
    assert message["exception.message"].startswith("GET http://h/p xxx")
    assert len(message["exception.message"]) == 512


def test_a_url_that_the_cut_goes_through_shows_no_credentials():
    """A long query before it is scrubbed away, so the URL at the cut would move into sight."""
    text = f"http://a/?{'q' * 2000} http://user:S3CRET{'x' * 200}@host/"
    assert "S3CRET" not in exception_attributes(ValueError(text))["exception.message"]


def test_causes_are_named_to_a_depth():
    """`raise … from`, and what was being handled; at most three."""
    cause = None
    for number in range(6):
        cause = caught(fail, ValueError(f"level {number}"), cause)
    lines = exception_attributes(cause)["exception.stacktrace"].splitlines()
    assert [line for line in lines if line.startswith("caused by")] == [
        f"caused by ValueError: level {number}" for number in (4, 3, 2)
    ]


def test_a_suppressed_context_is_not_a_cause():
    """`raise … from None` says so."""
    attributes = exception_attributes(caught(fail, ValueError("new"), None))
    assert "caused by" not in attributes["exception.stacktrace"]


def test_a_cycle_of_causes_ends():
    """Two exceptions that caused each other are named once."""
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert exception_attributes(first)["exception.stacktrace"] == "caused by ValueError: second"


@pytest.mark.parametrize(
    "make", [HostileError, lambda: BatchError(np.zeros(3))], ids=["hostile", "arrays"]
)
def test_exceptions_whose_own_methods_fail(make):
    """Comparing, printing or marking one may raise; recording it does not."""
    causes = [make(), make(), make()]
    for outer, inner in itertools.pairwise(causes):
        BaseException.__setattr__(outer, "__cause__", inner)
    attributes = exception_attributes(causes[0])
    assert attributes["exception.stacktrace"].count("caused by") == 2
    assert first_sight(causes[0], "a" * 32) in (True, False)


def test_an_exception_is_new_once_per_trace():
    """The innermost span records it; another trace records it again."""
    exception = ValueError()
    assert first_sight(exception, "a" * 32)
    assert not first_sight(exception, "a" * 32)
    assert first_sight(exception, "b" * 32)


def test_an_exception_that_takes_no_mark_is_always_new():
    """Better twice than not at all."""
    exception = HostileError()
    assert first_sight(exception, "a" * 32)
    assert first_sight(exception, "a" * 32)
    assert first_sight(SlottedError(), "a" * 32)

"""The call sites: closed they do nothing at all, open they make one span, and they never raise."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gymlog import (
    GymSpanGroup,
    is_span_group_enabled,
    managed_span,
    safe_set_span_attributes,
    sites,
    span_cm,
    span_groups,
    testing,
    trace_fn,
)
from gymlog.testing import Captured

GROUP = GymSpanGroup.VERIFY


@pytest.fixture
def only_default() -> Iterator[Captured]:
    """Telemetry with the default groups: `verify` is closed."""
    with testing.captured("default") as captured:
        yield captured


# Closed.


def test_a_closed_site_gives_none_and_leaves_the_context_alone(only_default: Captured) -> None:
    """Nothing is written; the current context is the very same object inside."""
    before = context.get_current()
    with managed_span(GROUP, "work", a=1) as span:
        assert span is None
        assert context.get_current() is before
    assert not is_span_group_enabled(GROUP)
    assert only_default.spans == []


def test_a_closed_site_is_the_shared_one(only_default: Captured) -> None:
    """Nothing is built for it, and it can be nested."""
    one, two = managed_span(GROUP, "one"), managed_span("no such group", "two", a=1)
    assert one is two
    with one, two, one:
        pass


def test_an_exception_passes_a_closed_site_unchanged(only_default: Captured) -> None:
    """The block's exception is the block's."""
    error = ValueError("bad")
    with pytest.raises(ValueError, match="bad") as caught:
        with managed_span(GROUP, "work"):
            raise error
    assert caught.value is error


def test_with_telemetry_off_every_site_is_closed() -> None:
    """Also the ungated one, and whatever groups are said to be open."""
    with testing.captured() as telemetry:
        sites.install(None)
        assert sites.installed_tracer() is None
        with managed_span(GROUP, "a") as managed, span_cm("b") as ungated:
            assert managed is None
            assert ungated is None
        assert trace_fn(GROUP, "c")(lambda: 5)() == 5
        safe_set_span_attributes(None, {"a": 1})
        assert telemetry.spans == []


def test_a_decorated_function_is_gated_when_it_is_called(only_default: Captured) -> None:
    """Decorating comes at import, long before telemetry is on."""

    @trace_fn(GROUP, "work")
    def work() -> int:
        return 1

    assert work() == 1
    assert only_default.spans == []
    span_groups.open_groups("verify")
    assert work() == 1
    assert only_default.span("work")["kind"] == "INTERNAL"
    span_groups.close_all()
    assert work() == 1
    assert len(only_default.spans) == 1


# Open.


def test_a_managed_span_is_current_internal_and_has_its_attributes(telemetry: Captured) -> None:
    """Names with dots come through `**`."""
    dotted: Any = {"gym.dotted": "x"}  # Any: mypy does not see which parameters are meant
    with managed_span(GROUP, "work", count=1, **dotted) as span:
        assert trace.get_current_span() is span
        assert span is not None
        span.set_attribute("later", True)
        with managed_span(GROUP, "inner"):
            pass
    line = telemetry.span("work")
    assert line["kind"] == "INTERNAL"
    assert line["attributes"] == {"count": 1, "gym.dotted": "x", "later": True}
    assert line["status"] == {"code": "UNSET"}
    assert telemetry.span("inner")["parent_span_id"] == line["span_id"]
    assert not trace.get_current_span().is_recording()


def test_a_failed_block_has_its_exception(telemetry: Captured) -> None:
    """Status, event, type; and it goes on."""
    with pytest.raises(ValueError, match="bad"), managed_span(GROUP, "work"):
        raise ValueError("bad")
    line = telemetry.span("work")
    assert line["status"] == {"code": "ERROR", "message": "ValueError: bad"}
    assert line["events"][0]["attributes"]["exception.type"] == "ValueError"


def test_span_cm_is_never_gated(only_default: Captured) -> None:
    """It asks no group, and can leave the exception out but not the error."""
    with pytest.raises(ValueError, match="bad"), span_cm("quiet", record_exception=False, a=1):
        raise ValueError("bad")
    with pytest.raises(ValueError, match="bad"), span_cm("loud"):
        raise ValueError("bad")
    quiet, loud = only_default.span("quiet"), only_default.span("loud")
    assert "events" not in quiet
    assert quiet["status"] == loud["status"] == {"code": "ERROR", "message": "ValueError: bad"}
    assert quiet["attributes"] == {"a": 1, "error.type": "ValueError"}
    assert len(loud["events"]) == 1


@pytest.mark.parametrize(
    "attribute",
    [
        "record_exception",
        "span",
        "self",
        "function",
        "kind",
    ],
)
def test_an_attribute_may_have_any_name_that_is_no_parameter(
    telemetry: Captured, attribute: str
) -> None:
    """Also beside one that is redacted, and with a tracer of one's own."""
    own = telemetry.provider.get_tracer("mine")
    given: Any = {attribute: "x"}  # Any: mypy does not see which parameters are meant
    with managed_span(GROUP, "plain", **given):
        pass
    for tracer in (None, own):
        with managed_span(GROUP, "secret", tracer, **given, key="k"):
            pass
    assert [line["attributes"][attribute] for line in telemetry.spans] == ["x"] * 3


def test_secrets_are_redacted_as_arguments_too(telemetry: Captured) -> None:
    """Text under a secret key, at every site; numbers stay."""
    with managed_span(GROUP, "one", prompt="p", tokens=5, token="t"):
        pass
    with span_cm("two", password="p", key=7, text=["a"]):
        pass
    assert telemetry.span("one")["attributes"] == {
        "prompt": "[REDACTED]",
        "tokens": 5,
        "token": "[REDACTED]",
    }
    assert telemetry.span("two")["attributes"] == {
        "password": "[REDACTED]",
        "key": 7,
        "text": "[REDACTED]",
    }


# A tracer of one's own.


def test_a_site_may_name_a_tracer_of_the_same_provider(telemetry: Captured) -> None:
    """Its spans carry that tracer's scope."""
    own = telemetry.provider.get_tracer("mine", "2")
    with managed_span(GROUP, "one", own), span_cm("two", own):
        trace_fn(GROUP, "three", own)(lambda: None)()
    assert [line["scope"] for line in telemetry.spans] == [{"name": "mine", "version": "2"}] * 3
    assert telemetry.span("three")["parent_span_id"] == telemetry.span("two")["span_id"]


def test_a_block_may_name_a_tracer_of_another_library(telemetry: Captured) -> None:
    """The span goes where that tracer writes; gymlog's gate still counts."""
    exporter = InMemorySpanExporter()
    provider = SdkTracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    foreign = provider.get_tracer("foreign")
    with (
        managed_span(GROUP, "outer"),
        span_cm("theirs", foreign, a=1),
        managed_span(GROUP, "inner"),
    ):
        pass
    (theirs,) = exporter.get_finished_spans()
    assert theirs.attributes == {"a": 1}
    outer, inner = telemetry.span("outer"), telemetry.span("inner")
    assert theirs.parent is not None
    assert theirs.context is not None
    assert f"{theirs.parent.span_id:016x}" == outer["span_id"]
    assert inner["parent_span_id"] == f"{theirs.context.span_id:016x}"


@pytest.mark.parametrize(
    "tracer",
    [trace.NoOpTracer(), SdkTracerProvider(shutdown_on_exit=False).get_tracer("foreign")],
    ids=["no-op", "SDK"],
)
def test_a_decorator_may_name_a_tracer_of_another_library(
    telemetry: Captured, tracer: trace.Tracer
) -> None:
    """Its span is current in the call; the call's result is the function's."""
    seen = []

    @trace_fn(GROUP, "work", tracer)
    def work() -> int:
        seen.append(trace.get_current_span().get_span_context())
        return 5

    with managed_span(GROUP, "outer"):
        assert work() == 5
    assert f"{seen[0].trace_id:032x}" == telemetry.span("outer")["trace_id"]


# Attributes that may be anything.


def set_on_a_span(telemetry: Captured, attributes: dict[str, Any], **options: Any) -> Any:
    # Any: attributes of any kind are the point
    with span_cm("a") as span:
        safe_set_span_attributes(span, attributes, **options)
    return telemetry.span("a")["attributes"]


def test_scalars_and_lists_of_them_are_set(telemetry: Captured) -> None:
    """None and everything else is skipped without a word."""
    given = {
        "text": "x", "flag": False, "whole": 1, "part": 0.5,
        "list": [1, 2], "tuple": ("a", "b"), "empty": [],
        "none": None, "mapping": {"a": 1}, "object": object(), "nested": [[1]], "holes": [1, None],
    }  # fmt: skip
    # "text" is one of the secret keys.
    assert set_on_a_span(telemetry, given) == {
        "text": "[REDACTED]", "flag": False, "whole": 1, "part": 0.5,
        "list": [1, 2], "tuple": ["a", "b"], "empty": [],
    }  # fmt: skip


SECRETS = ("prompt", "input_text", "output_text", "text", "password", "token", "secret", "key")


@pytest.mark.parametrize("key", SECRETS)
def test_text_under_a_secret_key_is_redacted(telemetry: Captured, key: str) -> None:
    """By the whole key: what only contains one stays."""
    assert set_on_a_span(telemetry, {key: "s", f"my_{key}": "kept"}) == {
        key: "[REDACTED]",
        f"my_{key}": "kept",
    }


def test_the_secret_keys_can_be_chosen(telemetry: Captured) -> None:
    """They replace the published ones."""
    given = {"mine": "s", "prompt": "kept"}
    assert set_on_a_span(telemetry, given, redact_keys=["mine"]) == {
        "mine": "[REDACTED]",
        "prompt": "kept",
    }


def test_no_span_and_an_ended_span_take_nothing(telemetry: Captured) -> None:
    """A closed site's None goes straight in."""
    safe_set_span_attributes(None, {"a": 1})
    span = telemetry.tracer.start_span("a")
    span.end()
    safe_set_span_attributes(span, {"a": 1})
    safe_set_span_attributes(trace.INVALID_SPAN, {"a": 1})
    assert telemetry.span("a")["attributes"] == {}


# Decorated functions keep what they are.


def test_a_decorated_function_is_still_its_kind(telemetry: Captured) -> None:
    """Frameworks look at it: name, docstring, signature, and whether it is awaited."""

    @trace_fn(GROUP, "work")
    async def work(a: int, *, b: str = "x") -> str:
        """Do it."""
        return b * a

    assert inspect.iscoroutinefunction(work)
    assert (work.__name__, work.__doc__) == ("work", "Do it.")
    assert str(inspect.signature(work)) == "(a: int, *, b: str = 'x') -> str"


def test_methods_of_every_kind_can_be_decorated(telemetry: Captured) -> None:
    """Below `staticmethod` and `classmethod`, as usual."""

    class Work:
        @trace_fn(GROUP, "plain")
        def plain(self, a: int) -> int:
            return a

        @classmethod
        @trace_fn(GROUP, "of class")
        def of_class(cls, a: int) -> int:
            return a

        @staticmethod
        @trace_fn(GROUP, "static")
        def static(a: int) -> int:
            return a

    assert [Work().plain(1), Work.of_class(2), Work.static(3)] == [1, 2, 3]
    assert [line["name"] for line in telemetry.spans] == ["plain", "of class", "static"]

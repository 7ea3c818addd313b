"""Carriers: `inject` and `extract` agree, any bytes are safe, OTel's API follows the same rules."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from opentelemetry import baggage, trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from gymlog.propagation import (
    MAX_BAGGAGE_LENGTH,
    Propagator,
    extract,
    extract_rollout_id,
    inject,
    inject_current,
)
from gymlog.rollout import rollout_context
from gymlog.testing import captured
from gymlog.trace_state import MAX_LENGTH

TRACE = "11112222333344445555666677778888"
SPAN = "aaaabbbbccccdddd"
ROLLOUT = "nemo.gym.rollout.id"


def hex_ids(length: int) -> st.SearchStrategy[str]:
    return st.integers(1, 16**length - 1).map(lambda value: f"{value:0{length}x}")


LOWER = string.ascii_lowercase + string.digits
KEYS = st.tuples(st.sampled_from(LOWER), st.text(LOWER + "_-*/@", max_size=255)).map("".join)
VALUES = st.text(
    [chr(code) for code in range(0x20, 0x7F) if chr(code) not in ",="], min_size=1, max_size=256
).filter(lambda value: not value.endswith(" "))
STATES = st.lists(st.tuples(KEYS, VALUES), max_size=32, unique_by=lambda member: member[0])
ROLLOUT_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}", fullmatch=True)


def raw(carrier: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in carrier.items()]


@given(hex_ids(32), hex_ids(16), st.integers(0, 3), STATES, st.none() | ROLLOUT_IDS)
def test_what_is_injected_is_extracted(
    trace_id: str,
    span_id: str,
    flags: int,
    members: list[tuple[str, str]],
    rollout_id: str | None,
) -> None:
    """Round trip of every valid context; only what exceeds the size limit of a list is lost."""
    pairs = [f"{key}={value}" for key, value in members]
    carrier: dict[str, str] = {}
    inject(carrier, trace_id, span_id, flags, ",".join(pairs), rollout_id)
    remote = extract(raw(carrier))
    assert remote is not None
    assert remote[:3] == (trace_id, span_id, flags)
    if len(",".join(pairs)) <= MAX_LENGTH:
        assert remote.trace_state == ",".join(pairs)
    else:
        kept = remote.trace_state.split(",")
        assert kept == [pair for pair in pairs if pair in kept]
        assert len(remote.trace_state) <= MAX_LENGTH
    assert extract_rollout_id(raw(carrier)) == rollout_id


NEAR_NAMES = st.sampled_from([b"traceparent", b"TraceState", b"tracestate", b"baggage", b"host"])
NEAR_VALUES = st.binary() | st.lists(
    st.sampled_from(
        [b"00-", b"cc-", b"ff-", TRACE.encode(), SPAN.encode(), b"-", b"01", b"\x00", b" ", b"=",
         b",", b"foo=1", b";", b"%", b"%ff", f"{ROLLOUT}=".encode(), b"\xff"]
    ),
    max_size=12,
).map(b"".join)  # fmt: skip


@given(st.lists(st.tuples(NEAR_NAMES | st.binary(), NEAR_VALUES)))
def test_any_bytes_give_an_answer(headers: list[tuple[bytes, bytes]]) -> None:
    """Nothing raises, and whatever is taken can be sent on and taken again unchanged."""
    remote = extract(headers)
    rollout_id = extract_rollout_id(headers)
    if remote is not None:
        carrier: dict[str, str] = {}
        inject(carrier, *remote, rollout_id)
        assert extract(raw(carrier)) == remote
        assert extract_rollout_id(raw(carrier)) == rollout_id


@given(st.lists(st.tuples(NEAR_NAMES | st.binary(), NEAR_VALUES)))
def test_otel_propagator_takes_what_extract_takes(headers: list[tuple[bytes, bytes]]) -> None:
    """OpenTelemetry's API, over the same rules, comes to the same span and rollout."""
    carrier: dict[str, list[str]] = {}
    for name, value in headers:
        text = name.decode("latin-1").lower()
        carrier.setdefault(text, []).append(value.decode("latin-1"))
    context = Propagator().extract(carrier, Context())
    span_context = trace.get_current_span(context).get_span_context()
    remote = extract(headers)
    assert span_context.is_valid == (remote is not None)
    if remote is not None:
        assert f"{span_context.trace_id:032x}" == remote.trace_id
        assert f"{span_context.span_id:016x}" == remote.span_id
        assert span_context.trace_flags == remote.flags
        assert span_context.trace_state.to_header() == remote.trace_state
        assert span_context.is_remote
    assert baggage.get_baggage(ROLLOUT, context) == extract_rollout_id(headers)


def test_inject_replaces_a_stale_context_whatever_its_case() -> None:
    """A request forwarded with its caller's headers must not carry two contexts."""
    carrier = {"TraceParent": "old", "tracestate": "old=1", "TRACESTATE": "old=2", "accept": "x"}
    inject(carrier, TRACE, SPAN, 1, "", None)
    assert carrier == {"accept": "x", "traceparent": f"00-{TRACE}-{SPAN}-01"}


def test_inject_replaces_every_value_of_a_multidict() -> None:
    carrier = CIMultiDict([("Traceparent", "a"), ("traceparent", "b"), ("Tracestate", "c=1")])
    inject(carrier, TRACE, SPAN, 3, "new=1", "12-0")
    assert carrier.getall("traceparent") == [f"00-{TRACE}-{SPAN}-03"]
    assert carrier.getall("tracestate") == ["new=1"]


def test_flags_that_nobody_defined_are_not_sent() -> None:
    carrier: dict[str, str] = {}
    inject(carrier, TRACE, SPAN, 0xFD, "", None)
    assert carrier["traceparent"].endswith("-01")


BAGGAGE = {
    "alone": (["nemo.gym.rollout.id=12-0"], "12-0"),
    "among others": (["a=1, nemo.gym.rollout.id = 12-0 ;p=1 , b=2"], "12-0"),
    "percent-encoded": (["nemo.gym.rollout.id=%31%32%2D0"], "12-0"),
    "second header": (["a=1", "nemo.gym.rollout.id=12-0"], "12-0"),
    "first of two": (["nemo.gym.rollout.id=12-0,nemo.gym.rollout.id=13-0"], "12-0"),
    "first valid of two": (["nemo.gym.rollout.id=/,nemo.gym.rollout.id=13-0"], "13-0"),
    "other key": (["xnemo.gym.rollout.id=12-0"], None),
    "key as a value": (["a=nemo.gym.rollout.id"], None),
    "no value": (["nemo.gym.rollout.id"], None),
    "path": (["nemo.gym.rollout.id=..%2Fetc"], None),
    "line break": (["nemo.gym.rollout.id=12%0A"], None),
    "no UTF-8": (["nemo.gym.rollout.id=%FF%FE"], None),
    "too long": ([f"nemo.gym.rollout.id={'1' * 257}"], None),
    "none": ([], None),
}


@pytest.mark.parametrize(("headers", "expected"), BAGGAGE.values(), ids=BAGGAGE.keys())
@pytest.mark.parametrize("name", [b"baggage", b"Baggage"])
def test_rollout_id_in_baggage(name: bytes, headers: list[str], expected: str | None) -> None:
    assert extract_rollout_id([(name, text.encode()) for text in headers]) == expected


def test_other_members_of_baggage_stay() -> None:
    """Ours comes first, an older one of ours goes, names in another case are one list."""
    carrier = {"Baggage": f"a=1;p , {ROLLOUT}=9-9", "baggage": "b=2,,"}
    inject(carrier, TRACE, SPAN, 1, "", "12-0")
    assert carrier.pop("traceparent")
    assert carrier == {"baggage": f"{ROLLOUT}=12-0,a=1;p ,b=2"}


def test_baggage_over_its_limit_loses_members_of_others() -> None:
    carrier = {"baggage": f"a={'x' * 5000},b={'y' * 5000},c=1"}
    inject(carrier, TRACE, SPAN, 1, "", "12-0")
    assert carrier["baggage"] == f"{ROLLOUT}=12-0,a={'x' * 5000},c=1"
    assert len(carrier["baggage"]) <= MAX_BAGGAGE_LENGTH


class TestCurrent:
    """`inject_current`: what the current context holds, and nothing else."""

    def test_span_of_ours(self) -> None:
        with captured() as telemetry, telemetry.tracer.start_as_current_span("work"):
            carrier = {"Baggage": "a=1"}
            inject_current(carrier)
        span = telemetry.span("work")
        traceparent = f"00-{span['trace_id']}-{span['span_id']}-03"
        assert carrier == {"traceparent": traceparent, "Baggage": "a=1"}

    def test_span_of_another_library(self) -> None:
        span = NonRecordingSpan(SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1)))
        carrier: dict[str, str] = {}
        inject_current(carrier, trace.set_span_in_context(span, Context()))
        assert carrier == {"traceparent": f"00-{1:032x}-{2:016x}-01"}

    def test_rollout_id_and_baggage_without_a_span(self) -> None:
        """A header that the caller wrote itself stays when there is no span to name."""
        carrier = {"traceparent": "of the caller", "baggage": "b=2,a=9"}
        with rollout_context("12-0"):
            inject_current(carrier, baggage.set_baggage("a", "1 2", Context()))
        assert carrier == {
            "traceparent": "of the caller",
            "baggage": f"{ROLLOUT}=12-0,a=1+2,b=2",
        }

    def test_nothing(self) -> None:
        carrier = {"accept": "x"}
        inject_current(carrier, Context())
        assert carrier == {"accept": "x"}


@pytest.mark.parametrize("rollout_id", ["", "a b", "a\r\nX-Evil: 1", "ü"])
def test_rollout_id_that_no_reader_takes_is_not_sent(rollout_id: str) -> None:
    carrier = {"baggage": "a=1"}
    inject(carrier, TRACE, SPAN, 1, "", rollout_id)
    assert carrier["baggage"] == "a=1"


def test_baggage_without_a_rollout_stays_as_it_is() -> None:
    carrier = {"Baggage": "a=1"}
    inject(carrier, TRACE, SPAN, 1, "", None)
    assert carrier["Baggage"] == "a=1"


class TestPropagator:
    """OpenTelemetry's API."""

    def context(self, trace_state: str = "") -> Context:
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-03", "tracestate": trace_state}
        return Propagator().extract(headers, Context())

    def test_keys_of_level_2_survive_the_api(self) -> None:
        """The API's own TraceState takes neither a leading digit nor a trailing @."""
        carrier: dict[str, str] = {}
        Propagator().inject(carrier, self.context("1a=1,b@=2,c@@d=3"))
        assert carrier["tracestate"] == "1a=1,b@=2,c@@d=3"

    def test_injects_span_baggage_and_rollout(self) -> None:
        carrier: dict[str, str] = {}
        with rollout_context("12-0"):
            Propagator().inject(carrier, baggage.set_baggage("a", "1", self.context()))
        assert carrier.pop("traceparent") == f"00-{TRACE}-{SPAN}-03"
        assert carrier == {"baggage": f"{ROLLOUT}=12-0,a=1"}

    def test_without_a_span_only_baggage_is_sent(self) -> None:
        carrier: dict[str, str] = {}
        with rollout_context("12-0"):
            Propagator().inject(carrier, Context())
        assert carrier == {"baggage": f"{ROLLOUT}=12-0"}

    def test_nothing_to_send_writes_nothing(self) -> None:
        carrier: dict[str, str] = {}
        Propagator().inject(carrier, Context())
        assert carrier == {}

    def test_names_in_any_case(self) -> None:
        carrier = {"TraceParent": f"00-{TRACE}-{SPAN}-03", "TRACESTATE": "a=1", "Baggage": "b=2"}
        context = Propagator().extract(carrier, Context())
        assert trace.get_current_span(context).get_span_context().trace_state == {"a": "1"}
        assert baggage.get_all(context) == {"b": "2"}

    def test_broken_header_leaves_the_context_alone(self) -> None:
        span = NonRecordingSpan(SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1)))
        before = trace.set_span_in_context(span, Context())
        after = Propagator().extract({"traceparent": f"ff-{TRACE}-{SPAN}-03"}, before)
        assert trace.get_current_span(after) is span

    def test_fields_are_the_names_it_sets(self) -> None:
        assert Propagator().fields == {"traceparent", "tracestate", "baggage"}

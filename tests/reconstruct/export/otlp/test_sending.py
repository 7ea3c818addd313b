"""An export's account: what arrived, what did not and why; nothing is lost on the way."""

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reconstruct.export.otlp.encoding import span_message
from reconstruct.export.otlp.forms import Item, JsonForm, ProtobufForm
from reconstruct.export.otlp.records import Records
from reconstruct.export.otlp.sending import Account, packed, send_all
from reconstruct.export.otlp.signals import KINDS
from reconstruct.export.otlp.transport import Answer

FORM = ProtobufForm(KINDS["traces"])
TAKEN = Answer("taken")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


class Transport:
    """Answers each request by a function of the span numbers in it."""

    def __init__(self, answer):
        self._answer = answer
        self.calls = 0
        self.taken = []

    def send(self, request, seconds):
        self.calls += 1
        message = ExportTraceServiceRequest.FromString(request)
        numbers = [
            int(span.span_id.hex(), 16)
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        answer = self._answer(numbers)
        if answer.outcome == "taken":
            self.taken += numbers
        return answer

    def close(self):
        pass


class Memory:
    def __init__(self):
        self.keys = []

    def add(self, keys):
        self.keys += keys


def item(row, number, form=FORM, **columns):
    one = row(number, **columns)
    owner = (one["resource"], one["scope_name"], one["scope_version"])
    name = (one["trace_id"], one["span_id"])
    return Item(form.encoded(span_message(one)), owner, number, name)


def send(transport, items, **options):
    account = Account()
    records = Records("traces", "TRUE", {})
    batches = packed(items, FORM, limit=options.pop("limit", 1_000_000))
    options = {"timeout": 0.2, **options}
    send_all(batches, transport, FORM, records, account=account, **options)
    return account


@given(st.integers(0, 60), st.sets(st.integers(1, 60), max_size=10))
def test_one_bad_span_does_not_take_its_neighbours_along(row, count, bad):
    bad = {number for number in bad if number <= count}
    transport = Transport(
        lambda numbers: Answer("refused", "too bad") if bad & {*numbers} else TAKEN
    )
    memory = Memory()
    account = send(transport, [item(row, number) for number in range(1, count + 1)], memory=memory)
    assert not account.stopped
    assert sorted(transport.taken) == sorted(set(range(1, count + 1)) - bad)
    assert sorted(memory.keys) == sorted(transport.taken)
    assert {int(unsent.what.split()[1], 16) for unsent in account.unsent} == bad
    assert account.sent == len(transport.taken)


def test_a_receiver_that_wants_nothing_is_not_asked_for_every_span(row):
    transport = Transport(lambda numbers: Answer("refused", "never"))
    account = send(transport, [item(row, number) for number in range(1, 2_001)])
    assert (account.sent, account.stopped) == (0, "never")
    assert transport.calls < 100


def test_a_failure_ends_the_export_and_only_what_arrived_is_remembered(row):
    answers = iter([TAKEN, Answer("failed", "gone")])
    transport = Transport(lambda numbers: next(answers))
    memory = Memory()
    items = [item(row, number) for number in range(1, 8)]
    account = send(transport, items, memory=memory, limit=200)
    assert (account.sent, account.stopped, transport.calls, account.requests) == (1, "gone", 2, 1)
    assert memory.keys == [1]


def test_busy_is_tried_again_within_the_timeout_and_no_longer(row):
    transport = Transport(lambda numbers: Answer("busy", "not now", wait_seconds=0.01))
    account = send(transport, [item(row, 1)], timeout=0.1)
    assert 2 <= transport.calls <= 11
    assert account.stopped.startswith("not now; it asks to wait 0.01 s; tried ")
    assert account.is_unreachable


def test_rejected_spans_and_remarks_are_kept(row):
    transport = Transport(lambda numbers: Answer("taken", "2 too old", rejected=2))
    account = send(transport, [item(row, number) for number in range(1, 6)])
    assert (account.sent, account.rejected, account.remarks) == (3, 2, ["2 too old"])


def test_progress_is_told_after_each_batch(row):
    """How many records have been read; the last time, all."""
    account, told = Account(), []
    records = Records("traces", "TRUE", {})

    def read():
        for number in range(1, 8):
            records.total = number
            yield item(row, number)

    batches = packed(read(), FORM, limit=200)
    transport = Transport(lambda numbers: TAKEN)
    send_all(batches, transport, FORM, records, timeout=1, account=account, progress=told.append)
    assert told == sorted(told)
    assert (len(told), told[-1], account.sent) == (account.requests, 7, 7)


def test_what_cannot_be_remembered_is_said(row):
    class Full(Memory):
        def add(self, keys):
            raise OSError(28, "No space left on device")

    account = send(Transport(lambda numbers: TAKEN), [item(row, 1)], memory=Full())
    assert account.sent == 1
    assert "No space left on device" in account.remarks[0]


@given(
    spans=st.lists(st.tuples(TEXT, st.none() | TEXT, st.none() | TEXT), max_size=12),
    limit=st.integers(1, 1_500),
    kind=st.sampled_from([ProtobufForm, JsonForm]),
)
def test_no_request_is_over_the_limit_unless_one_span_is(spans, limit, kind, row):
    form = kind(KINDS["traces"])
    items = [
        item(row, number, form, name=name, scope_name=scope, scope_version=version)
        for number, (name, scope, version) in enumerate(spans, 1)
    ]
    batches = list(packed(items, form, limit=limit))
    assert [one for batch in batches for one in batch] == items
    for batch in batches:
        assert len(batch) == 1 or len(form.request(batch)) <= limit

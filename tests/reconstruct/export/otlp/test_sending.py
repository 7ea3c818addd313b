"""An export's account: what arrived, what did not and why; nothing is lost on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.errors import UsageError
from reconstruct.export.otlp.receiver import Answer
from reconstruct.export.otlp.sending import connect, export


class Receiver:
    """Answers each request by a function of the span numbers in it."""

    destination = "nowhere"

    def __init__(self, answer):
        self._answer = answer
        self.calls = 0
        self.taken = []

    def send(self, request, spans):
        self.calls += 1
        numbers = [
            int(span.span_id.hex(), 16)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        assert len(numbers) == spans
        answer = self._answer(numbers)
        if answer.outcome == "taken":
            self.taken += numbers
        return answer

    def close(self):
        pass


TAKEN = Answer("taken")


def refuse(bad):
    """Refuse every request that holds one of the bad spans."""
    return lambda numbers: Answer("refused", "too bad") if bad & {*numbers} else TAKEN


@given(st.integers(0, 60), st.sets(st.integers(1, 60), max_size=10))
def test_one_bad_span_does_not_take_its_neighbours_along(row, count, bad):
    bad = {number for number in bad if number <= count}
    receiver = Receiver(refuse(bad))
    account = export(receiver, [row(number) for number in range(1, count + 1)])
    assert not account.stopped
    assert sorted(receiver.taken) == sorted(set(range(1, count + 1)) - bad)
    assert {int(unsent.span_id, 16) for unsent in account.unsent} == bad
    assert account.sent == len(receiver.taken)
    assert account.total == count
    assert account.sent + account.not_sent == count


def test_a_receiver_that_wants_nothing_is_not_asked_for_every_span(row):
    receiver = Receiver(lambda numbers: Answer("refused", "never"))
    account = export(receiver, [row(number) for number in range(1, 5_001)])
    assert (account.sent, account.not_sent, account.stopped) == (0, 5_000, "never")
    assert receiver.calls < 100


def test_a_failure_ends_the_export_and_counts_the_rest(row):
    text = "x" * 600_000  # two of these do not fit one request
    answers = iter([TAKEN, Answer("failed", "gone")])
    receiver = Receiver(lambda numbers: next(answers))
    rows = [row(number, name=text) for number in range(1, 8)]
    account = export(receiver, rows)
    assert (account.sent, account.not_sent, account.stopped) == (1, 6, "gone")
    assert (receiver.calls, account.requests) == (2, 1)


def test_rejected_spans_and_remarks_are_kept(row):
    receiver = Receiver(lambda numbers: Answer("taken", "2 too old", rejected_spans=2))
    account = export(receiver, [row(number) for number in range(1, 6)])
    assert (account.sent, account.not_sent, account.remarks) == (3, 2, ["2 too old"])


def test_what_otlp_cannot_say_is_named_and_the_rest_is_sent(row):
    receiver = Receiver(lambda numbers: TAKEN)
    account = export(receiver, [row(1), row(2, trace_id="ab"), row(3)])
    assert (account.sent, account.not_sent) == (2, 1)
    (unsent,) = account.unsent
    assert unsent.span_id == f"{2:016x}"
    assert "not to be said in OTLP: 'ab' is not 32 hex digits" in unsent.words


def test_progress_reaches_all_of_them(row):
    told = []
    rows = [row(number, name="x" * 600_000) for number in range(1, 4)]
    export(Receiver(lambda numbers: TAKEN), rows, progress=told.append)
    assert told[-1] == 3
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("protocol", "variable", "value"),
    [
        ("grpc", "OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("http/protobuf", "OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("http/protobuf", "OTEL_EXPORTER_OTLP_COMPRESSION", "zip"),
        ("grpc", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(protocol, variable, value, monkeypatch):
    monkeypatch.setenv(variable, value)
    endpoint = "https://localhost:1" if protocol == "grpc" else None
    with pytest.raises(UsageError, match=value):
        connect(protocol, endpoint=endpoint)

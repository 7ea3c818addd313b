"""Captured model calls: one row a call, in each API's words for tokens."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import InvalidRecordError, recognise
from reconstruct.intake.ledger import LineClass

Rows = list[dict[str, Any]]

CAPTURE = {
    "model_call_id": "f6647cb5",
    "dialect": "responses",
    "model_ref": {"type": "responses_api_models", "name": "policy_model"},
    "started_at": 1796006694.5520349,
    "completed_at": 1796006694.7566774,
    "latency_ms": 204.64,
    "latency_ttft_ms": 196.54,
    "status_code": 200,
    "error_category": None,
    "request": {"input": "hi"},
    "response": {
        "id": "resp_1",
        "model": "stub",
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
        },
    },
}


def test_a_call(rows_of: Callable[..., Rows]) -> None:
    """All that the capture says, and the capture itself."""
    (row,) = rows_of(json.dumps(CAPTURE))
    assert json.loads(row.pop("record")) == CAPTURE
    assert row == {
        "model_call_id": "f6647cb5",
        "rollout_id": None,
        "dialect": "responses",
        "server_name": "policy_model",
        "server_type": "responses_api_models",
        "model": "stub",
        "response_id": "resp_1",
        "start_time_unix_nano": 1_796_006_694_552_034_900,
        "end_time_unix_nano": 1_796_006_694_756_677_400,
        "duration_ns": 204_640_000,
        "time_to_first_token_ns": 196_540_000,
        "status_code": 200,
        "error_category": None,
        "input_tokens": 10,
        "cached_input_tokens": 4,
        "output_tokens": 5,
        "reasoning_tokens": 2,
    }
    record = recognise(CAPTURE, None)
    assert record is not None
    assert record.line_class is LineClass.MODEL_CALL


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (
            {
                "prompt_tokens": 7,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            (7, 1, 3, 2),
        ),
        ({"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 5}, (7, 5, 3, None)),
        ({"prompt_tokens": 7, "prompt_tokens_details": None}, (7, None, None, None)),
        (None, (None, None, None, None)),
    ],
)
def test_tokens_in_each_dialect(
    rows_of: Callable[..., Rows], usage: dict[str, Any] | None, tokens: tuple[int | None, ...]
) -> None:
    """Chat completions, messages, and answers without."""
    (row,) = rows_of(json.dumps(CAPTURE | {"response": {"usage": usage}}))
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
    assert tuple(row[name] for name in names) == tokens


def test_a_call_that_failed(rows_of: Callable[..., Rows]) -> None:
    """No answer but its raw text, no latency: nothing is made up."""
    change = {
        "response": None,
        "response_raw": "<html>",
        "status_code": 502,
        "error_category": "upstream",
        "completed_at": None,
        "latency_ms": None,
        "latency_ttft_ms": "soon",
        "request": {"model": "asked-for"},
    }
    (row,) = rows_of(json.dumps(CAPTURE | change))
    assert (row["status_code"], row["error_category"]) == (502, "upstream")
    assert (row["model"], row["response_id"]) == ("asked-for", None)
    for name in ("end_time_unix_nano", "duration_ns", "time_to_first_token_ns", "input_tokens"):
        assert row[name] is None


def test_what_it_cannot_do_without() -> None:
    """Its id and its start."""
    with pytest.raises(InvalidRecordError, match="started_at"):
        recognise(CAPTURE | {"started_at": "x"}, None)
    with pytest.raises(InvalidRecordError, match="model_call_id"):
        recognise(CAPTURE | {"model_call_id": 7}, None)

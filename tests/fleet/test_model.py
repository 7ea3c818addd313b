"""The model server: reproducible times, two dialects, spans as long as the answer."""

import asyncio
import json
from statistics import median

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import testing
from gymlog.fleet.dialects import CHAT, RESPONSES, ModelRequest, read_reply
from gymlog.fleet.model import latency_seconds, make_app

QUESTION = {"role": "user", "content": "What is the weather like?"}
RESULT = {"type": "function_call_output", "call_id": "call_0", "output": '{"celsius": 7}'}


def ask(path, body):
    """Return the server's answer, read to its end."""

    async def post():
        transport = httpx.ASGITransport(make_app(latency_scale=0.01))
        async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
            return await client.post(path, json=body)

    return asyncio.run(post())


def events(answer):
    """Return the data of each server-sent event."""
    return [block.removeprefix("data: ") for block in answer.text.split("\n\n") if block]


def test_latency_is_repeatable_and_differs_between_calls():
    """Equal seed and step give equal times, others give others."""
    assert latency_seconds(7, 1) == latency_seconds(7, 1)
    assert len({latency_seconds(seed, step) for seed in range(50) for step in range(4)}) == 200


def test_latency_is_log_normal_around_its_median():
    """Half of the calls take less than 0.4 s; the slowest of a thousand several times that."""
    times = [latency_seconds(seed, 1) for seed in range(1_000)]
    assert 0.35 < median(times) < 0.45
    assert max(times) > 3 * median(times)
    assert min(times) > 0


def test_responses_asks_for_the_tool_then_answers():
    """The first answer is a tool call, the one after its result a message with it."""
    call = ask("/v1/responses", {"input": [QUESTION]}).json()["output"][0]
    assert (call["type"], call["name"], call["call_id"]) == (
        "function_call",
        "get_weather",
        "call_0",
    )
    assert set(json.loads(call["arguments"])) == {"city"}
    message = ask("/v1/responses", {"input": [QUESTION, call, RESULT]}).json()["output"][0]
    assert (message["type"], message["content"][0]["type"]) == ("message", "output_text")
    assert '"celsius": 7' in message["content"][0]["text"]


def test_chat_completions_asks_for_the_tool_then_answers():
    """The same conversation in the other dialect."""
    path = "/v1/chat/completions"
    choice = ask(path, {"messages": [QUESTION]}).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    result = {"role": "tool", "tool_call_id": "call_0", "content": '{"celsius": 7}'}
    choice = ask(path, {"messages": [QUESTION, choice["message"], result]}).json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert '"celsius": 7' in choice["message"]["content"]


def test_a_streamed_response_ends_with_the_whole_one():
    """The last event holds what an answer in one piece would have been."""
    body = {"input": [QUESTION, RESULT], "seed": 3}
    streamed = [
        json.loads(event) for event in events(ask("/v1/responses", body | {"stream": True}))
    ]
    assert {event["type"] for event in streamed[:-1]} == {"response.output_text.delta"}
    assert streamed[-1] == {
        "type": "response.completed",
        "response": ask("/v1/responses", body).json(),
    }


def test_a_streamed_completion_says_the_same_words_and_is_done():
    """The deltas are the text, and [DONE] closes the stream."""
    body = {"messages": [QUESTION, {"role": "tool", "content": "rain"}]}
    whole = ask("/v1/chat/completions", body).json()["choices"][0]["message"]["content"]
    *chunks, done = events(ask("/v1/chat/completions", body | {"stream": True}))
    words = [json.loads(chunk)["choices"][0]["delta"]["content"] for chunk in chunks]
    assert done == "[DONE]"
    assert "".join(words).strip() == whole


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("path", "conversation", "name"),
    [
        ("/v1/responses", "input", "gym.model.responses"),
        ("/v1/chat/completions", "messages", "gym.model.chat_completions"),
    ],
)
def test_the_span_lasts_as_long_as_the_answer(path, conversation, name, is_streamed):
    """A stream's span ends with its last event, not when the handler returns."""
    body = {conversation: [QUESTION, RESULT], "seed": 5, "stream": is_streamed}
    with testing.captured() as telemetry:
        assert ask(path, body).status_code == 200
    span = telemetry.span(name)
    seconds = (span["end_time_unix_nano"] - span["start_time_unix_nano"]) / 1e9
    assert seconds >= 0.01 * latency_seconds(5, 2)
    assert span["attributes"]["gen_ai.operation.name"] == "chat"
    assert span["attributes"]["gen_ai.usage.output_tokens"] > 0


def test_a_request_without_a_conversation_is_refused():
    """Status 422 and what is missing, not a failure inside."""
    refused = ask("/v1/responses", {"model": "policy"})
    assert refused.status_code == 422
    assert "input" in refused.text


texts = st.text(max_size=40)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "tool"]), "content": texts}), max_size=6
)


@given(messages=messages, max_tool_calls=st.integers(0, 4), seed=st.integers(0, 1 << 31))
def test_any_conversation_has_a_reply_in_both_dialects(messages, max_tool_calls, seed):
    """A tool call as long as results are missing, then words; equal requests, equal replies."""
    body = {"messages": messages, "max_tool_calls": max_tool_calls, "seed": seed}
    reply = read_reply(ModelRequest.model_validate(body))
    results = sum(message["role"] == "tool" for message in messages)
    assert (reply.city is None) == (results >= max_tool_calls)
    assert reply == read_reply(ModelRequest.model_validate_json(json.dumps(body)))
    for dialect in (RESPONSES, CHAT):
        assert json.loads(json.dumps(dialect.whole(reply)))["model"] == "policy"
        assert len(dialect.events(reply)) == reply.output_tokens + 1

"""What the example model says, in each of the two dialects that gyms speak.

The model asks for the weather tool until `max_tool_calls` results are in the conversation, then
answers with them: enough for a rollout of several turns, and the same for equal requests.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import AliasChoices, BaseModel, Field

from gymlog.fleet.calls import JsonObject

__all__ = ["CHAT", "RESPONSES", "Dialect", "ModelRequest", "Reply", "read_reply"]

_CITIES: Final = ("Oslo", "Lima", "Nairobi", "Osaka", "Quito", "Tromsø", "Windhoek", "Yerevan")
_TOOL: Final = "get_weather"


class ModelRequest(BaseModel):
    """What the model is asked, in either dialect; what else these know is ignored."""

    model: str = "policy"
    seed: int = 0
    stream: bool = False
    max_tool_calls: int = 1
    messages: list[JsonObject] = Field(validation_alias=AliasChoices("input", "messages"))
    """The conversation so far: `input` in one dialect, `messages` in the other."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: a tool call when there is a city to ask about, else words."""

    model: str
    city: str | None
    words: tuple[str, ...]
    call_id: str
    input_tokens: int
    """Words of the conversation, which is near enough for a model that is none."""

    @property
    def output_tokens(self) -> int:
        return len(self.words)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def tool_call(self) -> JsonObject:
        """The tool's name and its arguments as JSON text."""
        return {"name": _TOOL, "arguments": json.dumps({"city": self.city}, ensure_ascii=False)}


def read_reply(request: ModelRequest) -> Reply:
    """Return the answer to a request; equal requests have equal answers."""
    results = [
        str(message.get("output") or message.get("content"))
        for message in request.messages
        if message.get("type") == "function_call_output" or message.get("role") == "tool"
    ]
    done = len(results)
    is_answer = done >= request.max_tool_calls
    city = None if is_answer else _CITIES[(request.seed + done) % len(_CITIES)]
    answer = f"The weather: {', '.join(results)}" if is_answer else f"{_TOOL} {city}"
    return Reply(
        model=request.model,
        city=city,
        words=tuple(answer.split()),
        call_id=f"call_{done}",
        input_tokens=len(json.dumps(request.messages).split()),
    )


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one API says a reply."""

    name: str
    whole: Callable[[Reply], JsonObject]
    """The body of an answer that is not streamed."""
    events: Callable[[Reply], list[str]]
    """The data of each server-sent event of one that is."""

    @property
    def span_name(self) -> str:
        """The span of a call."""
        return f"gym.model.{self.name}"


def _response(reply: Reply) -> JsonObject:
    if reply.city is None:
        content = [{"type": "output_text", "text": reply.text}]
        item: JsonObject = {"type": "message", "role": "assistant", "content": content}
    else:
        item = {"type": "function_call", "call_id": reply.call_id, **reply.tool_call}
    usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
    return {"object": "response", "model": reply.model, "output": [item], "usage": usage}


def _response_events(reply: Reply) -> list[str]:
    deltas = [{"type": "response.output_text.delta", "delta": f"{word} "} for word in reply.words]
    completed = {"type": "response.completed", "response": _response(reply)}
    return [json.dumps(event) for event in (*deltas, completed)]


def _completion(reply: Reply) -> JsonObject:
    message: JsonObject = {"role": "assistant"}
    if reply.city is None:
        message["content"] = reply.text
    else:
        call = {"id": reply.call_id, "type": "function", "function": reply.tool_call}
        message["tool_calls"] = [call]
    reason = "stop" if reply.city is None else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens}
    return {
        "object": "chat.completion", "model": reply.model, "choices": [choice], "usage": usage,
    }  # fmt: skip


def _completion_events(reply: Reply) -> list[str]:
    chunks = [
        {
            "object": "chat.completion.chunk",
            "model": reply.model,
            "choices": [{"index": 0, "delta": {"content": f"{word} "}}],
        }
        for word in reply.words
    ]
    return [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]


RESPONSES: Final = Dialect("responses", _response, _response_events)
CHAT: Final = Dialect("chat_completions", _completion, _completion_events)

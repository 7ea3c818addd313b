"""Model calls as NeMo Gym captures them: one object a call in `<rollout id>.capture.jsonl`.

No trace and no span stands in it: `sql/model_calls.sql` finds those. Times are float seconds since
1970, tokens whatever the model's API called them.
"""

from typing import Final

from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import Record
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.times import to_unix_nano

__all__ = ["recognise"]

_TELLTALE: Final = ("request", "response", "response_raw", "latency_ms")
_INPUT: Final = ("input_tokens", "prompt_tokens")
_OUTPUT: Final = ("output_tokens", "completion_tokens")
_INPUT_DETAILS: Final = ("input_tokens_details", "prompt_tokens_details")
_OUTPUT_DETAILS: Final = ("output_tokens_details", "completion_tokens_details")


def recognise(value: dict[str, Json], _server_hint: str | None) -> Record | None:
    """Turn a captured model call into a record."""
    if "model_call_id" not in value or not any(key in value for key in _TELLTALE):
        return None
    get = value.get
    model = fields.members(get("model_ref"))
    request, response = fields.members(get("request")), fields.members(get("response"))
    usage = fields.members(response.get("usage"))
    cached = fields.members(_first(usage, _INPUT_DETAILS)).get("cached_tokens")
    row = (
        fields.required_text(get("model_call_id"), "model_call_id"),
        fields.text(get("rollout_id", get("_ng_rollout_id"))),
        fields.text(get("dialect")),
        fields.text(model.get("name")),
        fields.text(model.get("type")),
        fields.text(response.get("model") or request.get("model")),
        fields.text(response.get("id")),
        fields.required_time(to_unix_nano(get("started_at")), "started_at"),
        to_unix_nano(get("completed_at")),
        _nanoseconds(get("latency_ms")),
        _nanoseconds(get("latency_ttft_ms")),
        fields.int64(get("status_code")),
        fields.text(get("error_category")),
        fields.int64(_first(usage, _INPUT)),
        fields.int64(usage.get("cache_read_input_tokens") if cached is None else cached),
        fields.int64(_first(usage, _OUTPUT)),
        fields.int64(fields.members(_first(usage, _OUTPUT_DETAILS)).get("reasoning_tokens")),
        fields.json_object(value),
    )
    return Record(LineClass.MODEL_CALL, ((tables.CAPTURE_LINES, row),))


def _first(value: dict[str, Json], names: tuple[str, ...]) -> Json:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _nanoseconds(milliseconds: Json) -> int | None:
    number = fields.float64(milliseconds)
    if number is None or not 0 <= number < 1e12:
        return None
    return round(number * 1e6)

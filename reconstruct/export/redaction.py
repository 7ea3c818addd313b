"""Rows without what they say: ids, names, times and structure stay, values go.

A column is kept only where it is listed here, in whatever relation it stands: another text becomes
`REDACTED`, as does the value of every attribute but those of `KEPT_KEYS`. Keys stay. Numbers and
booleans that are columns stay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from gymlog import semconv
from reconstruct.intake.json_text import Json, decode_encoded, encode

__all__ = ["KEPT_KEYS", "REDACTED", "Redaction"]

REDACTED: Final = "REDACTED"
KEPT_KEYS: Final = frozenset(
    {
        semconv.SERVICE_NAME,
        semconv.SERVICE_INSTANCE_ID,
        semconv.SERVICE_VERSION,
        semconv.PROCESS_PID,
        semconv.PROCESS_PARENT_PID,
        semconv.HOST_NAME,
        semconv.HOST_ID,
        semconv.TELEMETRY_SDK_NAME,
        semconv.TELEMETRY_SDK_LANGUAGE,
        semconv.TELEMETRY_SDK_VERSION,
        semconv.HTTP_REQUEST_METHOD,
        semconv.HTTP_REQUEST_RESEND_COUNT,
        semconv.HTTP_RESPONSE_STATUS_CODE,
        semconv.HTTP_ROUTE,
        semconv.URL_SCHEME,
        semconv.NETWORK_PROTOCOL_VERSION,
        semconv.ERROR_TYPE,
        semconv.EXCEPTION_TYPE,
        "rpc.system",
        "rpc.system.name",
        "db.system",
        "db.system.name",
        semconv.GEN_AI_OPERATION_NAME,
        "gen_ai.provider.name",
        semconv.GEN_AI_REQUEST_MODEL,
        "gen_ai.response.model",
        semconv.GEN_AI_USAGE_INPUT_TOKENS,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS,
        semconv.ROLLOUT_ID,
        semconv.RUN_ID,
        semconv.SERVICE_GROUP,
        semconv.SERVER_NAME,
        semconv.SERVER_TYPE,
        semconv.WORKER,
        semconv.SERVER_WORKER,
        semconv.STARTUP_STAGE,
        semconv.STARTUP_OUTCOME,
        semconv.ROLLOUT_OUTCOME,
        semconv.CONCURRENCY_SITE,
        semconv.MODEL_DIALECT,
        semconv.HTTP_RETRY_REASON,
        semconv.HTTP_INTERNAL,
        semconv.CPU_MODE,
        semconv.MEMORY_TYPE,
        semconv.GC_GENERATION,
        semconv.BOOT_ID,
        semconv.TASK_ID,
        semconv.CANCELLED,
        semconv.UNFINISHED,
        semconv.EVENT_LOOP_STALL_MS,
        semconv.EVENT_LOOP_IS_STALLED,
        semconv.EVENT_LOOP_CPU_MS,
        semconv.EVENT_LOOP_STALLS_OMITTED,
        semconv.EVENT_LOOP_TASK_NAME,
    }
)
"""Attributes whose values stay."""

_EMPTIED: Final = frozenset({"status_message", "trace_state"})
_KEPT_COLUMNS: Final = frozenset(
    {
        "agent_name",
        "aggregation_temporality",
        "boot_id",
        "bucket_counts",
        "call_path",
        "callee",
        "class",
        "client",
        "client_instance",
        "client_span_id",
        "code",
        "dialect",
        "error_category",
        "error_type",
        "explicit_bounds",
        "failed_name",
        "failed_service_name",
        "failed_span_id",
        "first_span_id",
        "host_name",
        "instance",
        "kind",
        "method",
        "model",
        "model_call_id",
        "name",
        "outcome",
        "parent_call_path",
        "parent_name",
        "parent_service_name",
        "parent_span_id",
        "parent_trace_id",
        "process_state",
        "resources_name",
        "rollout_id",
        "root_name",
        "root_span_id",
        "route",
        "run_id",
        "scope_name",
        "scope_version",
        "server",
        "server_instance",
        "server_name",
        "server_span_id",
        "server_type",
        "service_instance_id",
        "service_name",
        "severity",
        "severity_text",
        "slowest_tool",
        "span_id",
        "stage",
        "state",
        "status_code",
        "trace_id",
        "type",
        "unit",
        "waited_name",
        "waited_outcome",
        "waited_service_name",
        "waited_span_id",
    }
)
"""Texts that stay: ids, names, kinds, states; and the numbers of a histogram."""
_SMALL: Final = 10_000
"""Different resources and others that repeat, whose redacted text is remembered."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is taken out of rows; `kept` are the attributes whose values stay."""

    kept: frozenset[str] = field(default=KEPT_KEYS)

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:  # Any: as the columns
        """Return a row of any relation without its values; JSON columns hold JSON text."""
        return {name: self._value(name, value) for name, value in row.items()}

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return Arrow rows of any relation without their values; the schema stays."""
        columns = [
            self._column(name, column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _column(self, name: str, column: Any) -> Any:  # Any: the stubs know no extension arrays
        is_extension = isinstance(column, pa.ExtensionArray)
        stored = column.storage if is_extension else column
        if name in _KEPT_COLUMNS or not _may_hold_text(stored.type):
            return column
        values = [self._value(name, value) for value in stored.to_pylist()]
        redacted = pa.array(values, stored.type)
        return pa.ExtensionArray.from_storage(column.type, redacted) if is_extension else redacted

    def _value(self, name: str, value: Any) -> Any:  # Any: as the column
        if value is None or name in _KEPT_COLUMNS:
            return value
        if name in _EMPTIED:
            return None
        if isinstance(value, str) and name in _JSON_COLUMNS:
            return _redacted_json(name, value, self.kept)
        return _without_text(value)


def _may_hold_text(kind: pa.DataType) -> bool:
    return not (pa.types.is_primitive(kind) or pa.types.is_null(kind))


def _without_text(value: Any) -> Any:  # Any: a column's value
    """Replace every text in a value."""
    if isinstance(value, str | bytes):
        return REDACTED if isinstance(value, str) else REDACTED.encode()
    if isinstance(value, list | tuple):
        return [_without_text(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_text(item) for key, item in value.items()}
    return value


@lru_cache(maxsize=_SMALL)
def _redacted_json(name: str, text: str, kept: frozenset[str]) -> str:
    return encode(_JSON_COLUMNS[name](decode_encoded(text), kept))


def _attributes(value: Json, kept: frozenset[str]) -> Json:
    if not isinstance(value, dict):
        return REDACTED
    return {key: item if key in kept else REDACTED for key, item in value.items()}


def _resource(value: Json, kept: frozenset[str]) -> Json:
    attributes = value.get("attributes") if isinstance(value, dict) else None
    return {"attributes": _attributes(attributes or {}, kept)}


def _all(_: Json, __: frozenset[str]) -> Json:
    return REDACTED


def _each(value: Json, kept: frozenset[str]) -> Json:
    """Redact span events, links or exemplars: of a field that is not known nothing is kept."""
    if not isinstance(value, list):
        return []
    return [_part(item, kept) for item in value if isinstance(item, dict)]


_PART_NUMBERS: Final = frozenset({"time_unix_nano", "flags", "dropped_attributes_count", "value"})
_PART_TEXTS: Final = frozenset({"name", "trace_id", "span_id"})


def _part(part: dict[str, Json], kept: frozenset[str]) -> Json:
    result = {
        key: item
        for key, item in part.items()
        if (key in _PART_NUMBERS and isinstance(item, int | float))
        or (key in _PART_TEXTS and isinstance(item, str))
    }
    for key in ("attributes", "filtered_attributes"):
        if key in part:
            result[key] = _attributes(part[key], kept)
    return result


_JSON_COLUMNS: Final = {
    "attributes": _attributes,
    "resource": _resource,
    "events": _each,
    "links": _each,
    "exemplars": _each,
    "body": _all,
    "evidence": _all,
    "grounds": _all,
    "record": _all,
}
"""How the JSON of a column is redacted, by the column's name."""

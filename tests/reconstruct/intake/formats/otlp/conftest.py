"""The least span that OTLP has, and a batch of spans as one line."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Json = Any  # what a line may hold


@pytest.fixture(scope="session")
def small_span() -> dict[str, str]:
    """Nothing but what OTLP asks for."""
    return {
        "traceId": "a1b2c3d4e5f60718293a4b5c6d7e8f90",
        "spanId": "00f1e2d3c4b5a697",
        "name": "env.step",
        "startTimeUnixNano": "1750000000000000000",
        "endTimeUnixNano": "1750000000050000000",
    }


@pytest.fixture(scope="session")
def batch() -> Callable[..., str]:
    """The line of these spans and their resource."""

    def line(*spans: Json, resource: Json = None) -> str:
        scopes = [{"spans": list(spans)}]
        return json.dumps({"resourceSpans": [{"resource": resource or {}, "scopeSpans": scopes}]})

    return line

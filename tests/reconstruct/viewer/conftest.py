"""A browser without a window for the pages, one a module; what it complains of fails a test."""

import json
import random
import shutil

import pytest

from reconstruct.viewer.choice import everything
from reconstruct.viewer.contents import Contents, contents
from reconstruct.viewer.page import page
from reconstruct.viewer.payload import payload

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if path is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        with driver.chromium.launch(executable_path=path, args=FLAGS) as browser:
            yield browser


class Viewed:
    """A page in the browser, and what its root says of itself."""

    def __init__(self, page):
        self.page = page

    @property
    def state(self):
        return self.page.evaluate("document.querySelector('#viewer').state()")

    def keys(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        # Two frames: the first may have begun before the key.
        self.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        return self.state

    def until(self, condition):
        """Wait until `condition`, in JavaScript, holds for the state `s`; return it."""
        return self.page.evaluate(
            f"""new Promise((done) => {{
                const look = () => {{
                    const s = document.querySelector("#viewer").state();
                    if ({condition}) done(s);
                    else requestAnimationFrame(look);
                }};
                look();
            }})"""
        )

    def text(self, selector):
        return self.page.locator(selector).inner_text()


@pytest.fixture
def view(browser, tmp_path):
    """Return a function that opens contents at an address; no errors and no requests at the end."""
    contexts, complaints = [], []

    def open_page(shown, hash_="", **options):
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(page(shown.title, payload(shown)), encoding="utf-8")
        options = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"} | options
        context = browser.new_context(**options)
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((file.as_uri(), "blob:"))
                else complaints.append(request.url)
            ),
        )
        opened.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        opened.goto(file.as_uri() + hash_)
        opened.wait_for_selector("[data-ready]")
        return Viewed(opened)

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def of(logs):
    """Return a function that reads what `logs` holds into contents."""

    def read():
        with logs.engine() as engine:
            return contents(engine, everything(engine, None, limit=0))

    return read


@pytest.fixture(scope="session")
def many():
    """Return a function that makes contents of traces of ten spans, ids and lengths at random."""

    def make(count):
        dice = random.Random(7)
        start, rows = 1_800_000_000_000_000_000, []
        for number in range(count):
            within = number % 10
            if not within:
                trace = f"{dice.getrandbits(128):032x}"
                start += 2_000_000
            attributes = {
                "nemo.gym.rollout.id": f"{number // 10}-0",
                "http.route": "/run" if within < 4 else "/v1/responses",
                "http.response.status_code": 200,
            }
            rows.append(
                {
                    "node": number,
                    "parent": number - 1 if 0 < within < 4 else (number - within if within else -1),
                    "orphan": False,
                    "cycle": False,
                    "trace_id": trace,
                    "span_id": f"{dice.getrandbits(64):016x}",
                    "parent_span_id": None,
                    "name": ("gym.rollout", "POST /run", "HTTP POST")[within % 3],
                    "kind": "INTERNAL",
                    "state": "finished",
                    "service_name": ("agent", "model", "tools")[within % 3],
                    "service_instance_id": "one",
                    "run_id": "run-1",
                    "rollout_id": f"{number // 10}-0",
                    "start_time_unix_nano": start + within * 1_000_003,
                    "length_ns": 90_000_000 if not within else dice.randrange(1, 60_000_000),
                    "self_time_ns": dice.randrange(1, 1_000_000),
                    "is_error": number % 997 == 0,
                    "status_message": None,
                    "attributes": json.dumps(attributes),
                    "events": "[]",
                    "links": "[]",
                    "dropped_attributes_count": 0,
                    "file": "agent.log",
                    "line": number + 1,
                }
            )
        return Contents("many", rows, [], [], [], [], [])

    return make

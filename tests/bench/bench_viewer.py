"""What a page of many spans costs, beside a page of a hundredth of them.

The logs of a gym (`gym_logs.py`) become a page by `reconstruct html`; a Chromium without a window
opens it and zooms and pans by keys, in the waterfall and in the flame view. A frame should cost
what is in sight, not what is in the file: the ratio says how far that holds. Bytes are of the
file, the script included.

    python tests/bench/bench_viewer.py [--json] [--spans 100000]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gym_logs import write_gym_logs
from playwright.sync_api import Browser, sync_playwright

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
MOVES = """
async ([mode, moves]) => {
  const root = document.querySelector("#viewer");
  const press = (key) => root.querySelector(".stage").dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true }));
  press(mode);
  press("f");
  const before = root.state().frames.length;
  for (let at = 0; at < moves; at += 1) {
    press(["w", "w", "d", "s", "a"][at % 5]);
    await new Promise(requestAnimationFrame);
  }
  const frames = root.state().frames.slice(before).sort((a, b) => a - b);
  return [frames[frames.length >> 1], frames[Math.floor(frames.length * 0.95)]];
}
"""


def measured(browser: Browser, folder: Path, spans: int) -> dict[str, float]:
    """Write the logs, the page, and what the browser takes for it."""
    logs, file = folder / f"logs{spans}", folder / f"{spans}.html"
    write_gym_logs(logs, spans)
    begun = time.perf_counter()
    command = [sys.executable, "-m", "reconstruct.cli", "html", "--no-store", "--limit", "0"]
    subprocess.run([*command, str(logs), "-o", str(file)], check=True, capture_output=True)
    found: dict[str, float] = {
        "spans": spans,
        "written_s": time.perf_counter() - begun,
        "bytes_per_span": file.stat().st_size / spans,
    }
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file.as_uri())
    page.wait_for_selector("[data-ready]")
    found["ready_ms"] = page.evaluate("performance.now()")
    for key, mode in (("1", "waterfall"), ("2", "flame")):
        median, slow = page.evaluate(MOVES, [key, 150])
        found |= {f"{mode}_frame_p50_ms": median, f"{mode}_frame_p95_ms": slow}
    page.close()
    return found


def main() -> None:
    """Measure both and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spans", type=int, default=100_000)
    asked = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        with driver.chromium.launch(executable_path=chromium, args=FLAGS) as browser:
            few = measured(browser, Path(name), max(asked.spans // 100, 16))
            many = measured(browser, Path(name), asked.spans)
    ratios = {key: many[key] / few[key] for key in many if few[key]}
    if asked.json:
        print(json.dumps({"few": few, "many": many, "ratios": ratios}, indent=2))
        return
    print(f"{'':22}{'few':>12}{'many':>12}{'ratio':>9}")
    for key in many:
        print(f"{key:22}{few[key]:12,.1f}{many[key]:12,.1f}{ratios.get(key, 0):8.1f}x")


if __name__ == "__main__":
    main()

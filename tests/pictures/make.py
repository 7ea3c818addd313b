"""Makes the README's pictures from the program itself.

    python tests/pictures/make.py [LOGS]

Without LOGS it runs the example gym first. Look at the pictures before committing them.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
COLUMNS = 104
PAGE_SIZE = {"width": 1280, "height": 640}

THEME = TerminalTheme(
    (22, 24, 29),
    (214, 218, 224),
    [
        *((59, 63, 70), (229, 72, 77), (61, 154, 99), (217, 165, 20)),
        *((91, 157, 240), (180, 138, 232), (75, 184, 197), (214, 218, 224)),
    ],
    [(128, 134, 144)] * 8,
)


def run(*arguments: str) -> str:
    """Return what one of the two programs prints, in colour."""
    finished = subprocess.run(
        [sys.executable, "-m", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": str(COLUMNS), "COLORTERM": "truecolor", "TERM": "xterm"},
    )
    return finished.stdout


def svg_of(ansi: str, title: str) -> str:
    """Return terminal output as an SVG that asks nothing of any network."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    console.print(Text.from_ansi(ansi.rstrip("\n")), soft_wrap=True)
    svg = console.export_svg(title=title, theme=THEME, unique_id="gymlog")
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!-- Generated.*?-->", "", svg)
    return svg.replace("Fira Code", "ui-monospace, DejaVu Sans Mono, Menlo, Consolas")


def screenshot_of(page: Path, file: Path) -> None:
    """Take a picture of a page of `reconstruct html`, with its longest call selected."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport=PAGE_SIZE, device_scale_factor=1.5)
        tab.goto(page.as_uri())
        tab.wait_for_function("document.getElementById('viewer').state?.().drawn > 0")
        for _ in range(9):
            tab.keyboard.press("ArrowDown")
        tab.wait_for_timeout(300)
        tab.screenshot(path=file)
        browser.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = sys.argv[1] if len(sys.argv) > 1 else folder
        if len(sys.argv) == 1:
            run("gymlog.cli", "demo", "--rollouts", "40", "--out", logs, "--no-show")
        shown = run("reconstruct.cli", "show", "--slowest", logs, "--color", "always")
        page = Path(folder, "page.html")
        run("reconstruct.cli", "html", "--slowest", "1", logs, "-o", str(page))
        screenshot_of(page, HERE / "page.png")
    command = "reconstruct show --slowest logs/"
    (HERE / "waterfall.svg").write_text(svg_of(shown, command), encoding="utf-8")


if __name__ == "__main__":
    main()

"""The page: one file, one script that may run, nothing of the data ever markup."""

import base64
import hashlib
import re
from importlib.resources import files

from reconstruct.viewer.page import MODULES, module, page


def test_the_policy_lets_run_only_the_script_and_the_style_of_the_page():
    text = page("title", b"data")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    for tag, rule in (('script type="module"', "script-src"), ("style", "style-src")):
        inner = re.search(rf"<{tag}>(.*?)</{tag.split()[0]}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_a_title_is_text():
    assert "<title>&lt;b&gt;&amp;</title>" in page("<b>&", b"")


def test_all_modules_are_in_it_and_none_imports_any_more():
    folder = files("reconstruct.viewer")
    written = {path.name for path in folder.iterdir() if path.name.endswith(".js")}
    assert written == {f"{name}.js" for name in MODULES}
    assert not re.search(r"^import ", module(), re.MULTILINE)
    assert "</script" not in module()


def test_a_module_imports_only_those_before_it():
    folder = files("reconstruct.viewer")
    for at, name in enumerate(MODULES):
        text = folder.joinpath(f"{name}.js").read_text(encoding="utf-8")
        assert set(re.findall(r'from "\./(\w+)\.js"', text)) <= set(MODULES[:at])
        assert text.count("\n") <= 520


def luminance(color):
    """As WCAG 2 defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_words_stand_out_from_their_ground_as_aa_asks():
    style = files("reconstruct.viewer").joinpath("viewer.css").read_text(encoding="utf-8")
    blocks = re.findall(r"#viewer(?:\.dark)? \{([^}]*--text: [^}]*)\}", style)
    assert len(blocks) == 2
    for block in blocks:
        colors = dict(re.findall(r"--(\w+): (#\w{6});", block))
        for ground in ("back", "panel", "choice"):
            for ink in ("text", "soft", "error", "accent"):
                dark, light = sorted((luminance(colors[ground]), luminance(colors[ink])))
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (ground, ink)

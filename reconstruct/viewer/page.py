"""The page: modules, styles and payload in one HTML file that asks no network.

A browser refuses modules that import each other from `file://`, so they become one: imports
between them go, since all names then stand in one scope. The payload is base64 in a script element
of no type that runs; nothing of it is ever read as markup. The policy in the head lets run what
has the hash of the module, and nothing else.
"""

import base64
import hashlib
import html
import re
from importlib.resources import files
from typing import Final

from reconstruct.render.text import clean

__all__ = ["MODULES", "module", "page"]

MODULES: Final = (
    "text",
    "model",
    "rows",
    "lanes",
    "paint",
    "timeline",
    "minimap",
    "svg",
    "overview",
    "map",
    "details",
    "place",
    "keys",
    "viewer",
)
"""In the order in which they stand in the page: a module imports only those before it."""
_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
_START: Final = """
mount(document.getElementById("viewer"), document.getElementById("payload").textContent);
"""


def module() -> str:
    """Return the viewer as one ES module, which exports `mount`, `decode` and the rest."""
    folder = files("reconstruct.viewer")
    texts = (folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in MODULES)
    return "\n".join(_IMPORT.sub("", text) for text in texts)


def page(title: str, payload: bytes) -> str:
    """Return the whole file for a payload of `payload.payload`."""
    folder = files("reconstruct.viewer")
    style = folder.joinpath("viewer.css").read_text(encoding="utf-8")
    script = module() + _START
    parts = {
        "title": html.escape(clean(title)),
        "policy": (
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
            "base-uri 'none'; form-action 'none'"
        ),
        "style": style,
        "script": script,
        "payload": base64.b64encode(payload).decode(),
    }
    text = folder.joinpath("page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

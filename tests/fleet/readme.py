"""The README's code blocks, by how they start."""

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BLOCKS", "ROOT", "Block", "block"]

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Block:
    language: str
    text: str


BLOCKS = [Block(*match.groups()) for match in BLOCK.finditer((ROOT / "README.md").read_text())]


def block(start: str) -> Block:
    """Return the only block that starts so."""
    found = [block for block in BLOCKS if block.text.startswith(start)]
    assert len(found) == 1, f"{len(found)} blocks of the README start with {start!r}"
    return found[0]

"""The reference in the README is the one that the comments give."""

from pathlib import Path

from reconstruct.reference import reference

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_has_it() -> None:
    """Whoever changes a comment runs `reconstruct sql --reference` and puts it there."""
    text = README.read_text(encoding="utf-8")
    start, end = "<!-- reconstruct sql --reference -->\n", "<!-- end of reference -->\n"
    assert text.count(start) == text.count(end) == 1
    assert text.partition(start)[2].partition(end)[0] == reference()


def test_every_column_has_a_row_and_words() -> None:
    """No cell is empty, no cell breaks its table."""
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) > 150
    for row in rows:
        cells = row.replace("\\|", "").split("|")[1:-1]
        assert len(cells) in (2, 3)
        assert all(cell.strip() for cell in cells)

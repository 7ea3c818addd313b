"""Files that broke other readers: compressed, cut, and the same records in two of them."""

import bz2
import gzip
import lzma
import random
import sys
from collections.abc import Callable
from typing import ClassVar

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MS = 1_000_000


class TestC32CompressedFiles:
    """Whole, cut, empty and joined archives in one folder: each for itself, none hides another."""

    PACK: ClassVar[dict[str, Callable[[bytes], bytes]]] = {
        "gz": gzip.compress,
        "zst": zstd.compress,
        "xz": lzma.compress,
        "bz2": bz2.compress,
    }

    @pytest.mark.parametrize("suffix", PACK)
    def test_each_file_gives_its_whole_lines(self, suffix, write, reconstruct, line, joined, read):
        pack = self.PACK[suffix]
        noise = random.Random(3)
        long = [
            line(number, attributes={"noise": noise.randbytes(2_000).hex()})
            for number in range(100, 300)
        ]
        packed = pack(joined(*long))
        write(
            {
                "a.log": joined(line(1), line(2), line(3)),
                f"good.log.{suffix}": pack(joined(line(4), line(5))),
                f"multi.log.{suffix}": pack(joined(line(6))) + pack(joined(line(7))),
                f"empty.log.{suffix}": pack(b""),
                f"zero.log.{suffix}": b"",
                f"cut.log.{suffix}": packed[: len(packed) * 4 // 5],
                f"text.log.{suffix}": joined(line(8)),  # the name says what is not so
            }
        )
        with read() as found:
            rows = found.rows("SELECT file, count(*)::BIGINT AS n FROM spans GROUP BY file")
            spans = {row["file"].removesuffix(f".{suffix}"): row["n"] for row in rows}
            whole = spans.pop("cut.log", 0)
            assert spans == {"a.log": 3, "good.log": 2, "multi.log": 2, "text.log": 1}
            if suffix != "bz2":  # its blocks are of 900 kB: none is whole
                assert 0 < whole < 200
            problems = found.rows("SELECT file, problem FROM _files WHERE problem IS NOT NULL")
            assert [row["file"] for row in problems] == [f"cut.log.{suffix}"]
            assert "ends early" in problems[0]["problem"]
            (told,) = found.findings("damaged_file")
            assert told["file"] == f"cut.log.{suffix}"
        done = reconstruct("lines", ".")
        assert done.code == 0
        assert f"cut.log.{suffix}: " in done.err


class TestC38ReadTwice:
    """A record that comes twice counts once; one id with two contents is told."""

    @pytest.fixture
    def files(self, line, joined, at):
        begun = line(5, 1, name="model call", end_time=None)
        ended = line(5, 1, name="model call", end_time=at(200))
        return {
            "app.1.log": joined(line(1), line(2, 1), line(3, 1), begun),
            "app.log": joined(
                line(3, 1),
                line(2, 1),
                ended,
                line(6, 1, end_time=at(50)),
                line(7, 1, name="clash", end_time=at(40)),
                line(7, 1, name="other work", end_time=at(90)),
            ),
        }

    @pytest.fixture
    def result(self, read):
        """Spans, clashes of ids, and classes."""

        def of(*paths):
            with read(*paths) as found:
                spans = found.rows("SELECT name, state, duration_ns FROM spans ORDER BY ALL")
                clashes = found.rows("SELECT span_id FROM findings WHERE code = 'id_collision'")
                return [tuple(row.values()) for row in spans], clashes, found.classes()

        return of

    def test_doubles_pairs_and_a_clash(self, write, files, result):
        """Ten lines, seven spans: their sums are right."""
        write(files)
        spans, clashes, counted = result()
        assert spans == [
            ("clash", "finished", 40 * MS),
            ("model call", "finished", 200 * MS),
            ("other work", "finished", 90 * MS),
            ("span 1", "finished", MS),
            ("span 2", "finished", MS),
            ("span 3", "finished", MS),
            ("span 6", "finished", 50 * MS),
        ]
        assert clashes == [{"span_id": f"{7:016x}"}]
        assert counted == {"span": 7, "span_start": 1, "duplicate": 2}

    def test_a_second_reading_changes_nothing_but_duplicates(self, write, files, result):
        """The same files under other names, and the same name given twice."""
        folder = write(files)
        once = result("app.1.log", "app.log")
        assert result("app.log", "app.1.log", "app.log", str(folder / "app.log")) == once
        write({f"copy/{name}": data for name, data in files.items()})
        spans, clashes, counted = result()
        assert (spans, clashes) == once[:2]
        assert counted == {"span": 7, "span_start": 1, "duplicate": 12}

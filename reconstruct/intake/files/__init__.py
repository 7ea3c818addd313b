"""Files in all the ways in which they come: found, opened, unpacked, cut into lines."""

from reconstruct.intake.files.finding import Found, Skipped, find, search
from reconstruct.intake.files.lines import Lines
from reconstruct.intake.files.log_file import STDIN, LogFile, fingerprint
from reconstruct.intake.files.splitting import MAX_LINE_BYTES, OddLine, lines_of

__all__ = [
    "MAX_LINE_BYTES",
    "STDIN",
    "Found",
    "Lines",
    "LogFile",
    "OddLine",
    "Skipped",
    "find",
    "fingerprint",
    "lines_of",
    "search",
]

"""What must not reach a line: values under secret keys, credentials and queries of URLs."""

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

__all__ = ["REDACTED", "SECRET_KEYS", "scrub_text", "scrub_url"]

REDACTED: Final = "[REDACTED]"

SECRET_KEYS: Final = frozenset(
    {"prompt", "input_text", "output_text", "text", "password", "token", "secret", "key"}
)
"""Attribute keys whose text is replaced, compared as a whole (NeMo Gym's published list)."""

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)(?P<rest>[^\s'\"<>\\]+)")


def scrub_url(url: str) -> str:
    """Return `url` without user, password, query string and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return REDACTED
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def scrub_text(text: str) -> str:
    """Return free text (an exception's message) with each URL in it scrubbed."""
    if "://" not in text:
        return text
    return _URL.sub(_scrub_match, text)


def _scrub_match(match: re.Match[str]) -> str:
    rest = re.split(r"[?#]", match["rest"], maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    # A userinfo may hold slashes only when somebody forgot to encode them: cut those as well.
    if "@" in path and not authority.rpartition("@")[1] and ":" in authority:
        authority, slash, path = rest.rpartition("@")[2].partition("/")
    return f"{match['scheme']}{authority.rpartition('@')[2]}{slash}{path}"

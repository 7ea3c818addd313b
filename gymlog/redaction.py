"""What must not reach a line: values under secret keys, credentials and queries of URLs."""

import re
from typing import Final

__all__ = ["REDACTED", "SECRET_KEYS", "scrub_text", "scrub_url"]

REDACTED: Final = "[REDACTED]"

SECRET_KEYS: Final = frozenset(
    {"prompt", "input_text", "output_text", "text", "password", "token", "secret", "key"}
)
"""Attribute keys whose text is replaced, compared as a whole (NeMo Gym's published list)."""

_URL: Final = re.compile(
    r"(?P<quote>[\"'`])?(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)"
    r"(?P<rest>(?(quote)(?:(?!(?P=quote))[^\s<>])*|[^\s<>]*))"
)
"""A URL in a text: up to a space, one that stands in quotes up to the closing one."""

_PATH_WITH_QUERY: Final = re.compile(r"(?<![\w/:?#])(?P<path>/[^\s?#]*)\?\S+")
_HOST_AND_PORT: Final = re.compile(r"\[[^\]]*\](:\d*)?|[^:]*(:\d{0,5})?")


def scrub_url(url: str) -> str:
    """Return `url` without user, password, query string and fragment."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}://{_scrub_rest(rest)}" if separator else _before_query(url)


def scrub_text(text: str) -> str:
    """Return free text (an exception's message) with each URL and path in it scrubbed."""
    if "://" in text:
        text = _URL.sub(
            lambda url: f"{url['quote'] or ''}{url['scheme']}{_scrub_rest(url['rest'])}", text
        )
    if "?" in text:
        text = _PATH_WITH_QUERY.sub(r"\g<path>", text)
    return text


def _scrub_rest(rest: str) -> str:
    """Scrub what follows `://`."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" not in authority and "@" in rest and not _HOST_AND_PORT.fullmatch(authority):
        return REDACTED  # a password with a `/`, `?` or `#` that nobody encoded
    path = _before_query(rest[len(authority) :])
    return authority.rpartition("@")[2] + scrub_text(path)


def _before_query(url: str) -> str:
    return re.split(r"[?#]", url, maxsplit=1)[0]

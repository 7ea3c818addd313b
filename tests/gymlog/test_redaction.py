"""Redaction: no credentials and no query string reach a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog.redaction import scrub_text, scrub_url


@pytest.mark.parametrize(
    ("url", "scrubbed"),
    [
        ("http://host:8080/v1/run", "http://host:8080/v1/run"),
        ("http://host/p?api_key=S3CRET#part", "http://host/p"),
        ("http://host?api_key=S3CRET", "http://host"),
        ("https://user:S3CRET@host/p", "https://host/p"),
        ("https://user:S3CRET@x@host/p", "https://host/p"),
        ("https://S3CRET@host:1/p", "https://host:1/p"),
        ("redis://:S3CRET@cache:6379/0", "redis://cache:6379/0"),
        ("postgresql+psycopg2://u:S3CRET@db/gym", "postgresql+psycopg2://db/gym"),
        ("http://[::1]:8000/p?q=S3CRET", "http://[::1]:8000/p"),
        ("http://host/who/@me?mail=S3CRET@x", "http://host/who/@me"),
        ("http://10.0.0.1:80/who/@me", "http://10.0.0.1:80/who/@me"),
        ("http://u:S3/CRET@host/p", "http://[REDACTED]"),
        ("http://u:S3?CRET@host/p", "http://[REDACTED]"),
        ("http://u:S3#CRET@host/p", "http://[REDACTED]"),
        ("http://[broken?x=S3CRET", "http://[broken"),
        ("/v1/run?token=S3CRET#x", "/v1/run"),
        ("", ""),
    ],
)
def test_a_url_keeps_scheme_host_port_and_path(url, scrubbed):
    """What tells the way stays, what tells a secret goes."""
    assert scrub_url(url) == scrubbed


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("nothing to hide, is there?", "nothing to hide, is there?"),
        ("GET http://u:S3CRET@h/p?q=S3CRET failed", "GET http://h/p failed"),
        ("url='http://h/p?q=S3CRET' (2)", "url='http://h/p' (2)"),
        ('{"url": "http://h/p?q=\'S3CRET\'", "n": 1}', '{"url": "http://h/p", "n": 1}'),
        ("http://h/p?filter='S3CRET'", "http://h/p"),
        (r"http://h/p?filter=\S3CRET", "http://h/p"),
        ("<http://h/p?q=S3CRET>", "<http://h/p>"),
        ("http://a/x,http://u:S3CRET@b/y", "http://a/x,http://b/y"),
        ("two: ftp://S3CRET@a/ and\nhttp://b/?S3CRET", "two: ftp://a/ and\nhttp://b/"),
        (
            "Max retries exceeded with url: /p?token=S3CRET (x)",
            "Max retries exceeded with url: /p (x)",
        ),
    ],
)
def test_every_url_of_a_text_is_scrubbed(text, scrubbed):
    """The rest of the text stays as it is."""
    assert scrub_text(text) == scrubbed


_word = st.text("abcXYZ019._~-", min_size=1, max_size=8)


@given(_word, _word, st.text("abc/@:?#&=%'\"", max_size=8), st.sampled_from(["", "'", '"', "("]))
def test_no_secret_survives_wherever_it_stands(host, name, noise, quote):
    """User, password and query are gone for any host, any path and any quoting."""
    for url in (
        f"http://{name}:S3CRET{noise}@{host}/p",
        f"http://{host}/p?{name}=S3CRET",
        f"http://{host}/p#S3CRET",
    ):
        assert "S3CRET" not in scrub_url(url)
        if not quote or quote not in noise:
            assert "S3CRET" not in scrub_text(f"calling {quote}{url}{quote} failed")


@given(st.text())
def test_any_text_can_be_scrubbed_again_without_change(text):
    """Scrubbing is total, and done once is done."""
    once = scrub_text(text)
    assert scrub_text(once) == once

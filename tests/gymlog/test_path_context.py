"""Context in the path: taken off whole, put back on redirects."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog.path_context import split_root, take_off

TRACEPARENT = "00-11112222333344445555666677778888-aaaabbbbccccdddd-01"

rollout_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
rests = st.lists(
    st.text(
        st.characters(exclude_characters="/", exclude_categories=("Cs",)), min_size=1, max_size=6
    ).filter(lambda segment: segment not in ("ng-rollout", "ng-trace")),
    min_size=1,
    max_size=4,
).map(lambda segments: "/" + "/".join(segments))


def scope_of(path, root_path=""):
    return {"path": path, "raw_path": quote(path).encode(), "root_path": root_path}


@given(rollout_ids, rests, st.sampled_from(["", "/api", "/a b"]), st.booleans(), st.booleans())
def test_any_path_behind_its_context_comes_out_as_it_was(rollout_id, rest, root, traced, captures):
    """path, raw_path and both contexts are exact, whatever the rest of the path is."""
    prefix = f"/ng-rollout/{rollout_id}" + ("/training-token-capture" if captures else "")
    prefix = f"/ng-trace/{TRACEPARENT}{prefix}" if traced else prefix
    if captures and rest.startswith("/training-token-capture"):
        return
    scope = scope_of(root + prefix + rest, root)
    context = take_off(scope)
    assert scope["path"] == root + rest
    assert scope["raw_path"] == quote(root + rest).encode()
    assert context.rollout_id == rollout_id
    assert context.traceparent == (TRACEPARENT.encode() if traced else None)
    assert context.root == quote(root).encode()
    assert context.prefix == prefix.encode()


@given(st.text(st.characters(exclude_categories=("Cs",))), st.text(max_size=5))
def test_a_path_without_valid_context_is_left_alone(text, root):
    """No text raises; what is not context stays where it is."""
    for path in (f"/{text}", f"/x/ng-rollout/{text}", f"/ng-rollout/!{text}"):
        scope = scope_of(path, root)
        before = dict(scope)
        if take_off(scope) is None:
            assert scope == before


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/ng-rollout/12-0", "/"),
        ("/ng-rollout/12-0/", "/"),
        ("/ng-rollout/12-0/v1/responses", "/v1/responses"),
        ("/ng-rollout/12-0/training-token-capture/v1/responses", "/v1/responses"),
        (f"/ng-rollout/12-0/ng-trace/{TRACEPARENT}/run", "/run"),
        (f"/ng-trace/{TRACEPARENT}/ng-rollout/12-0/run", "/run"),
    ],
)
def test_segments_may_stand_in_any_order(path, rest):
    """Rollout and trace segments are both taken off, a bare prefix leaves the root."""
    scope = scope_of(path)
    assert take_off(scope).rollout_id == "12-0"
    assert scope["path"] == rest
    assert scope["raw_path"] == rest.encode()


def test_a_missing_raw_path_stays_missing():
    """raw_path is optional in ASGI."""
    scope = {"path": "/ng-rollout/12-0/run"}
    assert take_off(scope).prefix == b"/ng-rollout/12-0"
    assert scope == {"path": "/run"}


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (b"/items", b"/ng-rollout/12-0/items"),
        (b"http://h:1/items?a=b#c", b"http://h:1/ng-rollout/12-0/items?a=b#c"),
        (b"http://elsewhere/items", b"http://elsewhere/items"),
        (b"/ng-rollout/12-0/items", b"/ng-rollout/12-0/items"),
        (b"items", b"items"),
        (b"http://[", b"http://["),
    ],
)
def test_a_redirect_that_stays_here_keeps_the_context(location, expected):
    """The client's second request has the same rollout as its first."""
    context = take_off(scope_of("/ng-rollout/12-0/items/"))
    headers = [(b"content-length", b"0"), (b"Location", location)]
    answer = context.put_back(headers, [(b"host", b"h:1")])
    assert list(answer) == [(b"content-length", b"0"), (b"Location", expected)]


def test_a_redirect_below_a_root_path_keeps_both():
    """The context stands between the root path and the rest."""
    context = take_off(scope_of("/api/ng-rollout/12-0/items/", "/api"))
    headers = context.put_back([(b"location", b"/api/items")], [])
    assert list(headers) == [(b"location", b"/api/ng-rollout/12-0/items")]


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/api/items", "/api", ("/api", "/items")),
        ("/api", "/api", ("/api", "/")),
        ("/api/", "/api/", ("/api", "/")),
        ("/apix/items", "/api", ("", "/apix/items")),
        ("/items", "/api", ("", "/items")),
        ("/items", "", ("", "/items")),
    ],
)
def test_the_root_path_is_split_off_only_as_whole_segments(path, root, expected):
    """A root path is a prefix of segments, not of characters."""
    assert split_root(path, root) == expected

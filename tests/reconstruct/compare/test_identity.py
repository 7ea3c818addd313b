"""What makes a span the same work in another rollout."""

from typing import Any

import pytest

from reconstruct.compare.identity import changed_attributes, identity
from reconstruct.tree import Span


def span(**attributes: Any) -> Span:
    """Make a span with attributes, `_` for a dot."""
    facts = dict.fromkeys(Span.__dataclass_fields__)
    facts |= {"name": "work", "kind": "INTERNAL", "state": "finished", "children": ()}
    facts |= {"attributes": {key.replace("_", "."): value for key, value in attributes.items()}}
    return Span(**facts)


def test_the_route_counts_and_not_the_rollout() -> None:
    """Of a client, of a server without a template; ids in a path are anything."""
    same = [
        "http://10.0.0.1:8000/ng-rollout/3-0/v1/items/17",
        "http://10.0.0.2:9000/ng-rollout/4-1-a2/v1/items/18?x=1",
        "http://h/ng-rollout/4-1/training-token-capture/v1/items/19",
        "https://h/v1/items/0f3a9c",
    ]
    assert len({identity(span(url_full=url)) for url in same}) == 1
    assert identity(span(url_full="http://h/v2/items/1")) != identity(span(url_full=same[0]))
    assert identity(span(url_full="http://[")) == identity(span())


def test_ordinals_and_chosen_keys_count() -> None:
    assert identity(span(agent_turn=1)) != identity(span(agent_turn=2))
    assert identity(span(tool="a")) == identity(span(tool="b"))
    assert identity(span(tool="a"), ["tool"]) != identity(span(tool="b"), ["tool"])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"model": "m"}, {"model": "n"}, {"model": ("m", "n")}),
        ({"model": "m"}, {}, {"model": ("m", None)}),
        (
            {"span_id": 1, "server_port": 1, "seen_unix_nano": 1},
            {"span_id": 2},
            {"seen.unix.nano": (1, None)},
        ),
        ({"input_tokens": 100}, {"input_tokens": 124}, {}),
        ({"input_tokens": 100}, {"input_tokens": 140}, {"input.tokens": (100, 140)}),
        ({"status_code": 100}, {"status_code": 124}, {"status.code": (100, 124)}),
        ({"url_path": "/a/1"}, {"url_path": "/a/2"}, {}),
        ({"url_path": "/a/x"}, {"url_path": "/a/y"}, {"url.path": ("/a/x", "/a/y")}),
    ],
)
def test_what_attributes_say(
    one: dict[str, Any], other: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Ids and ports say nothing, amounts have the tolerance."""
    assert changed_attributes(span(**one), span(**other), 0.25) == expected

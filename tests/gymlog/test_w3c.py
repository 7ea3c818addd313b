"""W3C Trace Context level 2, case by case: what comes in, and what is sent on.

The cases are those of the working group's validation service and of reported faults, with values
of their own. Each goes in as raw headers and is judged by the headers that the next request gets.
"""

import asyncio
import string

import pytest

from gymlog import testing
from gymlog.client import request
from gymlog.propagation import extract, inject
from gymlog.server import instrument_fastapi
from gymlog.trace_state import MAX_LENGTH

TRACE = "11112222333344445555666677778888"
SPAN = "aaaabbbbccccdddd"
OWN_TRACE = "e" * 32
OWN_SPAN = "f" * 16
PARENT = f"00-{TRACE}-{SPAN}-01"


def sent_on(*headers: tuple[str, str]) -> dict[str, str]:
    """Return the headers of the request that a service sends while it serves `headers`."""
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    remote = extract(raw)
    carrier: dict[str, str] = {}
    if remote is None:
        inject(carrier, OWN_TRACE, OWN_SPAN, 3, "", None)
    else:
        assert remote.span_id == SPAN
        inject(carrier, remote.trace_id, OWN_SPAN, remote.flags, remote.trace_state, None)
    return carrier


CONTINUED = {
    "sampled": (PARENT, "01"),
    "not sampled": (f"00-{TRACE}-{SPAN}-00", "00"),
    "random flag": (f"00-{TRACE}-{SPAN}-02", "02"),
    "sampled and random": (f"00-{TRACE}-{SPAN}-03", "03"),
    "flags nobody defined go": (f"00-{TRACE}-{SPAN}-09", "01"),
    "all flags": (f"00-{TRACE}-{SPAN}-ff", "03"),
    "space before": (f" {PARENT}", "01"),
    "tab before": (f"\t{PARENT}", "01"),
    "space after": (f"{PARENT} ", "01"),
    "tab after": (f"{PARENT}\t", "01"),
    "both, both sides": (f"\t {PARENT} \t", "01"),
    "later version": (f"cc-{TRACE}-{SPAN}-01", "01"),
    "later version, more fields": (f"cc-{TRACE}-{SPAN}-01-later", "01"),
    "later version, empty field": (f"01-{TRACE}-{SPAN}-01-", "01"),
    "later version, its flags": (f"fe-{TRACE}-{SPAN}-86-x-y", "02"),
}


@pytest.mark.parametrize(("traceparent", "flags"), CONTINUED.values(), ids=CONTINUED.keys())
def test_trace_goes_on(traceparent: str, flags: str) -> None:
    """Same trace id, a parent id of our own, version 00, only flags that level 2 defines."""
    assert sent_on(("traceparent", traceparent)) == {
        "traceparent": f"00-{TRACE}-{OWN_SPAN}-{flags}"
    }


def test_digits_alone_are_ids() -> None:
    trace, span = "12345678123456781234567812345678", "1234567812345678"
    remote = extract([(b"traceparent", f"00-{trace}-{span}-01".encode())])
    assert remote == (trace, span, 1, "")


@pytest.mark.parametrize("name", ["traceparent", "Traceparent", "TraceParent", "TRACEPARENT"])
def test_name_in_any_case(name: str) -> None:
    assert sent_on((name, PARENT))["traceparent"] == f"00-{TRACE}-{OWN_SPAN}-01"


RESTARTED = {
    "no header": [],
    "other name, dash": [("trace-parent", PARENT)],
    "other name, dot": [("trace.parent", PARENT)],
    "empty": [("traceparent", "")],
    "white space": [("traceparent", " \t ")],
    "no ASCII": [("traceparent", "\xff")],
    "two, different": [("traceparent", PARENT), ("traceparent", f"00-{OWN_TRACE}-{SPAN}-01")],
    "two, equal": [("traceparent", PARENT), ("traceparent", PARENT)],
    "two, case differs": [("traceparent", PARENT), ("TraceParent", PARENT)],
    "second one broken": [("traceparent", PARENT), ("traceparent", "")],
    "two in one line": [("traceparent", f"{PARENT}, {PARENT}")],
    "version 00 with a tail": [("traceparent", f"{PARENT}-more")],
    "version 00 with a dash": [("traceparent", f"{PARENT}-")],
    "version 00 with a dot": [("traceparent", f"{PARENT}.")],
    "later version, no dash": [("traceparent", f"cc-{TRACE}-{SPAN}-01.x")],
    "later version, cut": [("traceparent", f"cc-{TRACE}-{SPAN}-0")],
    "version ff": [("traceparent", f"ff-{TRACE}-{SPAN}-01")],
    "version in upper case": [("traceparent", f"CC-{TRACE}-{SPAN}-01")],
    "version, bad first digit": [("traceparent", f".0-{TRACE}-{SPAN}-01")],
    "version, bad second digit": [("traceparent", f"0.-{TRACE}-{SPAN}-01")],
    "version too long": [("traceparent", f"000-{TRACE}-{SPAN}-01")],
    "version far too long": [("traceparent", f"0000-{TRACE}-{SPAN}-01")],
    "version too short": [("traceparent", f"0-{TRACE}-{SPAN}-01")],
    "version missing": [("traceparent", f"{TRACE}-{SPAN}-01")],
    "trace id zero": [("traceparent", f"00-{'0' * 32}-{SPAN}-01")],
    "trace id, bad first digit": [("traceparent", f"00-.{TRACE[1:]}-{SPAN}-01")],
    "trace id, bad last digit": [("traceparent", f"00-{TRACE[:-1]}.-{SPAN}-01")],
    "trace id in upper case": [("traceparent", f"00-{'A' * 32}-{SPAN}-01")],
    "trace id, underscore": [("traceparent", f"00-1_{TRACE[2:]}-{SPAN}-01")],
    "trace id, other digits": [("traceparent", f"00-\xb2{TRACE[1:]}-{SPAN}-01")],
    "trace id too long": [("traceparent", f"00-{TRACE}9-{SPAN}-01")],
    "trace id too short": [("traceparent", f"00-{TRACE[1:]}-{SPAN}-01")],
    "parent id zero": [("traceparent", f"00-{TRACE}-{'0' * 16}-01")],
    "parent id, bad first digit": [("traceparent", f"00-{TRACE}-.{SPAN[1:]}-01")],
    "parent id, bad last digit": [("traceparent", f"00-{TRACE}-{SPAN[:-1]}.-01")],
    "parent id in upper case": [("traceparent", f"00-{TRACE}-{SPAN.upper()}-01")],
    "parent id too long": [("traceparent", f"00-{TRACE}-{SPAN}9-01")],
    "parent id too short": [("traceparent", f"00-{TRACE}-{SPAN[1:]}-01")],
    "flags, bad first digit": [("traceparent", f"00-{TRACE}-{SPAN}-.1")],
    "flags, bad second digit": [("traceparent", f"00-{TRACE}-{SPAN}-0.")],
    "flags in upper case": [("traceparent", f"00-{TRACE}-{SPAN}-0A")],
    "flags too long": [("traceparent", f"00-{TRACE}-{SPAN}-001")],
    "flags too short": [("traceparent", f"00-{TRACE}-{SPAN}-1")],
    "flags missing": [("traceparent", f"00-{TRACE}-{SPAN}")],
    "a space inside": [("traceparent", f"00-{TRACE} -{SPAN}-01")],
    "a new line behind": [("traceparent", f"{PARENT}\n")],
}


@pytest.mark.parametrize("headers", RESTARTED.values(), ids=RESTARTED.keys())
def test_new_trace(headers: list[tuple[str, str]]) -> None:
    """Ids of our own, and no `tracestate`: it belonged to a trace that ends here."""
    assert sent_on(*headers, ("tracestate", "foo=1")) == {
        "traceparent": f"00-{OWN_TRACE}-{OWN_SPAN}-03"
    }


def numbered(count: int, start: int = 1) -> str:
    return ",".join(f"k{number:02}=v{number:02}" for number in range(start, start + count))


ANY_KEY = string.ascii_lowercase + string.digits + "_-*/"
ANY_VALUE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in ",=")

STATES = {
    "one": (["foo=1"], "foo=1"),
    "order stays": (["foo=1,bar=2"], "foo=1,bar=2"),
    "several headers": (["foo=1,bar=2", "rojo=3", "baz=4"], "foo=1,bar=2,rojo=3,baz=4"),
    "empty header": ([""], None),
    "empty header first": (["", "foo=1"], "foo=1"),
    "empty header last": (["foo=1", ""], "foo=1"),
    "empty members": ([",foo=1,, ,\t,bar=2,"], "foo=1,bar=2"),
    "white space around members": (["foo=1 \t , \t bar=2, \t baz=3"], "foo=1,bar=2,baz=3"),
    "white space at the ends": (["\t foo=1 \t"], "foo=1"),
    "white space begins the value": (["foo=  1"], "foo=  1"),
    "white space inside the value": (["foo=1 2"], "foo=1 2"),
    "every character of a key": ([f"{ANY_KEY}=1"], f"{ANY_KEY}=1"),
    "every character of a tenant's key": ([f"{ANY_KEY}@{ANY_KEY}=1"], f"{ANY_KEY}@{ANY_KEY}=1"),
    "every character of a value": ([f"foo={ANY_VALUE}"], f"foo={ANY_VALUE}"),
    "key begins with a digit": (["1foo=1"], "1foo=1"),
    "key ends in @": (["foo@=1,bar=2"], "foo@=1,bar=2"),
    "key with @@": (["foo@@bar=1"], "foo@@bar=1"),
    "key with two @": (["foo@bar@baz=1"], "foo@bar@baz=1"),
    "tenant over level 1's length": ([f"{'t' * 242}@v=1"], f"{'t' * 242}@v=1"),
    "vendor over level 1's length": ([f"t@{'v' * 15}=1"], f"t@{'v' * 15}=1"),
    "key of 256": (["foo=1", f"{'z' * 256}=1"], f"foo=1,{'z' * 256}=1"),
    "key of 257": (["foo=1", f"{'z' * 257}=1"], None),
    "value of 256": ([f"foo={'v' * 256}"], f"foo={'v' * 256}"),
    "value of 256 and a space": ([f"foo={'v' * 256} "], f"foo={'v' * 256}"),
    "value of 257": ([f"foo={'v' * 257},bar=1"], None),
    "32 members": ([numbered(10), numbered(10, 11), numbered(12, 21)], numbered(32)),
    "32 members and empty ones": ([f",{numbered(32)},"], numbered(32)),
    "33 members": ([numbered(10), numbered(10, 11), numbered(13, 21)], None),
    "40 members": ([numbered(40)], None),
    "key twice, equal": (["foo=1,foo=1"], "foo=1"),
    "key twice, newest is first": (["foo=1,bar=2,foo=3"], "foo=1,bar=2"),
    "key twice in two headers": (["foo=1", "foo=2"], "foo=1"),
    "space in the key": (["foo =1,bar=2"], None),
    "key in upper case": (["FOO=1,bar=2"], None),
    "dot in the key": (["foo.bar=1,bar=2"], None),
    "key begins with @": (["@foo=1,bar=2"], None),
    "key begins with _": (["_foo=1"], None),
    "no key": (["=1,bar=2"], None),
    "no equals sign": (["foo,bar=2"], None),
    "two equals signs": (["foo=1=2,bar=2"], None),
    "no value": (["foo=,bar=3"], None),
    "blank value": (["foo=  ,bar=3"], None),
    "tab in the value": (["foo=1\t2"], None),
    "no ASCII in the value": (["foo=\xe4"], None),
    "control character": (["foo=\x7f"], None),
    "broken second header": (["foo=1", "bar"], None),
}


@pytest.mark.parametrize(("headers", "expected"), STATES.values(), ids=STATES.keys())
def test_tracestate(headers: list[str], expected: str | None) -> None:
    """The list is handed on or, when a member breaks the grammar, dropped; the trace stays."""
    carrier = sent_on(("traceparent", PARENT), *(("tracestate", text) for text in headers))
    assert carrier.pop("traceparent") == f"00-{TRACE}-{OWN_SPAN}-01"
    assert carrier == ({} if expected is None else {"tracestate": expected})


@pytest.mark.parametrize("name", ["tracestate", "TraceState", "TrAcEsTaTe", "TRACESTATE"])
def test_tracestate_name_in_any_case(name: str) -> None:
    assert sent_on(("traceparent", PARENT), (name, "foo=1"))["tracestate"] == "foo=1"


@pytest.mark.parametrize("name", ["trace-state", "trace.state"])
def test_tracestate_by_another_name_is_not_sent_on(name: str) -> None:
    assert "tracestate" not in sent_on(("traceparent", PARENT), (name, "foo=1"))


def test_tracestate_before_traceparent() -> None:
    carrier = sent_on(("tracestate", "foo=1"), ("traceparent", PARENT))
    assert carrier["tracestate"] == "foo=1"


def test_oversized_tracestate_loses_long_members_first() -> None:
    """Members over 128 characters go first, from the end, and only as many as must."""
    long = [f"l{number}={'x' * 250}" for number in range(10)]
    short = [f"s{number}={'y' * 20}" for number in range(20)]
    mixed = [member for pair in zip(long, short[:10], strict=True) for member in pair]
    state = sent_on(("traceparent", PARENT), ("tracestate", ",".join([*mixed, *short[10:]])))
    members = state["tracestate"].split(",")
    assert len(state["tracestate"]) <= MAX_LENGTH
    kept = [member for member in long if member in members]
    assert kept == long[: len(kept)]
    assert [member for member in members if member in short] == short
    assert len(state["tracestate"]) + 1 + len(long[len(kept)]) > MAX_LENGTH


def test_oversized_tracestate_of_short_members_is_cut_at_the_end() -> None:
    members = [f"s{number:02}={'y' * 100}" for number in range(32)]
    state = sent_on(("traceparent", PARENT), ("tracestate", ",".join(members)))["tracestate"]
    kept = state.split(",")
    assert kept == members[: len(kept)]
    assert len(state) <= MAX_LENGTH < len(state) + 1 + len(members[0])


def test_512_characters_are_sent_on_whole() -> None:
    state = f"foo={'x' * 250},bar={'y' * 251}"
    assert len(state) == 510
    assert sent_on(("traceparent", PARENT), ("tracestate", state))["tracestate"] == state


def test_through_ingress_and_egress(serve) -> None:
    """A service in the middle: what it is sent as raw bytes, and what it sends on over a socket."""
    inherited = {name: [("traceparent", value)] for name, (value, _) in CONTINUED.items()}
    with_state = {
        name: [("traceparent", PARENT), *(("tracestate", text) for text in headers)]
        for name, (headers, _) in STATES.items()
    }
    cases = inherited | RESTARTED | with_state
    arrived: list[dict[str, str]] = []

    async def middle(scope, receive, send):
        target = dict(scope["headers"])[b"x-target"].decode()
        async with await request("POST", target, json=[]) as response:
            await response.read()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def end(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        arrived.append(dict(line.split(": ", 1) for line in head[1:] if line))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def ask(address, headers) -> bytes:
        reader, writer = await asyncio.open_connection(*address)
        lines = [f"{name}: {value}\r\n" for name, value in headers]
        head = f"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{''.join(lines)}\r\n"
        writer.write(head.encode("latin-1"))
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    async def run(address) -> list[tuple[str, dict[str, str] | None]]:
        results = []
        async with await asyncio.start_server(end, "127.0.0.1", 0) as last:
            port = last.sockets[0].getsockname()[1]
            target = ("X-Target", f"http://127.0.0.1:{port}/")
            for name, headers in cases.items():
                answer = await ask(address, [*headers, target])
                refused = b" 400 " in answer.split(b"\r\n", 1)[0]
                results.append((name, None if refused else arrived[-1]))
        return results

    with testing.captured("default"), serve(instrument_fastapi(middle)) as address:
        results = asyncio.run(run(address))
    refused = [name for name, headers in results if headers is None]
    assert set(refused) <= {"control character"}  # uvicorn's parser will not have it
    for name, headers in results:
        if headers is None:
            continue
        parent = headers["traceparent"].split("-")
        assert parent[2] != SPAN, name
        if name in CONTINUED:
            assert (parent[1], parent[3]) == (TRACE, CONTINUED[name][1]), name
        elif name in RESTARTED:
            assert parent[1] not in (TRACE, "0" * 32), name
            assert parent[3] == "03", name
        else:
            assert parent[1] == TRACE, name
            assert headers.get("tracestate") == STATES[name][1], name

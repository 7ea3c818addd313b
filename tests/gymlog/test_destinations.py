"""Who may see trace context: the fleet by default, and what the setting adds or takes away."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import destinations, notices
from gymlog.destinations import VARIABLE, Destinations


@pytest.fixture(autouse=True)
def _nothing_said() -> None:
    notices.reset()


INTERNAL = [
    "localhost",
    "LOCALHOST",
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.1.1",
    "::1",
    "[::1]",
    "::",
    "fd12::1",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:10.0.0.1",
    "model",
    "policy-model",
    "model.",
    "node7.local",
    "vm.c.project.internal",
    "model.gym.svc",
    "model.gym.svc.cluster.local",
    "model.gym.svc.cluster.local.",
]
EXTERNAL = [
    "api.example.com",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "192.169.0.1",
    "100.64.0.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "local.example.com",
    "internal.example.com",
    "svc.example",
    "xlocal.example.",
    "10.0.0.1.example.com",
    "134744072",
    "0x08080808",
    "8.526344",
    "",
    ".",
]


@pytest.mark.parametrize("host", INTERNAL)
def test_fleet_by_default(host: str) -> None:
    assert host in Destinations()


@pytest.mark.parametrize("host", EXTERNAL)
def test_outside_by_default(host: str) -> None:
    """Also what only looks internal, and numbers that a resolver takes for addresses."""
    assert host not in Destinations()


def test_own_host_name_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Node7.cluster.example.com")
    assert "node7.cluster.example.com" in Destinations()
    assert "node8.cluster.example.com" not in Destinations()


SETTINGS = {
    "host": ("model.example.com", ["model.example.com", "MODEL.example.com."], ["x.example.com"]),
    "suffix": (".example.com", ["a.example.com", "a.b.example.com"], ["aexample.com"]),
    "suffix with star": ("*.example.com", ["a.example.com"], ["example.com", "aexample.com"]),
    "network": ("100.64.0.0/10", ["100.64.0.1", "100.127.0.1"], ["100.128.0.1"]),
    "network with host bits": ("100.64.7.1/10", ["100.64.0.1"], ["100.128.0.1"]),
    "address": ("8.8.8.8", ["8.8.8.8", "::ffff:8.8.8.8"], ["8.8.4.4"]),
    "address, six": ("[2001:db8::1]", ["2001:db8::1", "2001:0db8:0:0::1"], ["2001:db8::2"]),
    "network, six": ("2001:db8::/32", ["2001:db8:1::1"], ["2001:db9::1"]),
    "every host": ("*", ["api.example.com", "8.8.8.8", "model"], []),
    "all but one": ("*,-api.example.com", ["x.example.com"], ["api.example.com"]),
    "taken away": ("-192.168.0.0/16", ["10.0.0.1"], ["192.168.1.1"]),
    "taken away, other sign": ("!model", ["agent"], ["model"]),
    "none": ("-*", [], ["localhost", "127.0.0.1", "model"]),
    "these alone": ("-*, model", ["model"], ["localhost", "agent"]),
    "the last decides": ("-model,model", ["model"], []),
    "blanks": (" , a.example ,\tb.example, ", ["a.example", "b.example", "model"], ["c.example"]),
}


@pytest.mark.parametrize(("spec", "inside", "outside"), SETTINGS.values(), ids=SETTINGS.keys())
def test_setting(spec: str, inside: list[str], outside: list[str]) -> None:
    allowed = Destinations(spec)
    assert [host for host in inside if host not in allowed] == []
    assert [host for host in outside if host in allowed] == []


@pytest.mark.parametrize(
    "entry", ["http://model/", "10.0.0.0/99", "model:8000", "a..b", "-", "ä b"]
)
def test_entry_that_is_no_host_is_reported_and_left_out(
    entry: str, capfd: pytest.CaptureFixture[str]
) -> None:
    allowed = Destinations(f"{entry},api.example.com")
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert VARIABLE in said
    assert repr(entry) in said
    assert "api.example.com" in allowed
    assert "other.example.com" not in allowed


@given(st.text(), st.text())
def test_any_text_is_judged(spec: str, host: str) -> None:
    """No spec and no host raises, and asking again gives the same answer."""
    allowed = Destinations(spec)
    assert (host in allowed) == (host in allowed)


def test_answers_are_kept_within_bounds() -> None:
    allowed = Destinations()
    for number in range(5_000):
        assert f"host{number}" in allowed
        assert f"host{number}" in allowed
    assert len(allowed._kept) <= 4_096


def test_environment_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    destinations.from_environment.cache_clear()
    monkeypatch.setenv(VARIABLE, "api.example.com")
    try:
        assert "api.example.com" in destinations.from_environment()
        monkeypatch.setenv(VARIABLE, "")
        assert "api.example.com" in destinations.from_environment()
    finally:
        destinations.from_environment.cache_clear()

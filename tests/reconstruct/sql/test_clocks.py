"""Clocks: which processes take their times from the same one."""

from typing import Any

BASE = 1_800_000_000_000_000_000


def clocks(logs: Any, *services: tuple[str, str, str | None]) -> dict[str, str]:
    """Write a span and a process line (host, boot) for each service; return their clocks."""
    for service, host, boot in services:
        logs.span(service, service=service)
        logs.process("started", 0, service=service, host=host, boot=boot)
    with logs.engine() as engine:
        rows = engine.rows("SELECT instance, clock FROM _owner_clocks")
    return {row["instance"].partition("#")[0]: row["clock"] for row in rows}


def test_processes_of_a_host_share_its_clock(logs: Any) -> None:
    found = clocks(logs, ("a", "node-1", None), ("b", "node-1", None), ("c", "node-2", None))
    assert found == {"a": "node-1", "b": "node-1", "c": "node-2"}


def test_containers_of_a_machine_share_its_clock(logs: Any) -> None:
    """Their host names differ, the boot of the machine does not."""
    found = clocks(logs, ("a", "pod-1", "b1"), ("b", "pod-2", "b1"), ("c", "pod-3", "b2"))
    assert found == {"a": "pod-1", "b": "pod-1", "c": "pod-3"}


def test_a_host_that_was_booted_anew_has_two_clocks(logs: Any) -> None:
    """Who does not say which of its boots has a third one."""
    found = clocks(logs, ("a", "node", "b1"), ("b", "node", "b2"), ("c", "node", None))
    assert found == {"a": "node boot b1", "b": "node boot b2", "c": "node"}


def test_who_names_no_boot_has_that_of_its_host(logs: Any) -> None:
    found = clocks(logs, ("a", "node", "b1"), ("b", "node", None))
    assert found == {"a": "node", "b": "node"}


def test_a_process_without_a_host_has_a_clock_of_its_own(logs: Any) -> None:
    logs.span("x", service="x")
    logs.span("y", service="y")
    logs.span("z", "y", service="y")
    with logs.engine() as engine:
        rows = engine.rows("SELECT clock, span_count, root_count FROM clocks ORDER BY ALL")
    assert [tuple(row.values()) for row in rows] == [("x#x-1", 1, 1), ("y#y-1", 2, 1)]


def test_what_a_clock_is(logs: Any) -> None:
    logs.span("root", service="a")
    logs.span("open", "root", 10, None, service="b")
    logs.span("orphan", "nobody", service="b", trace="u")
    for service, host in (("a", "pod-1"), ("b", "pod-2")):
        logs.process("started", 0, service=service, host=host, boot="b1")
    with logs.engine() as engine:
        assert engine.rows("FROM clocks") == [
            {
                "clock": "pod-1",
                "host_name": "pod-1",
                "host_count": 2,
                "boot_id": "b1",
                "instance_count": 2,
                "span_count": 3,
                "root_count": 1,
            }
        ]


def test_replicas_that_share_a_name_are_told_by_their_hosts(logs: Any) -> None:
    """Without service.instance.id or pid they are one instance, but not one clock."""
    for number in (1, 2):
        logs.raw(
            f'{{"trace_id":"{number:032x}","span_id":"{number:016x}","name":"x",'
            f'"start_time_unix_nano":{BASE + number},"end_time_unix_nano":{BASE + 9},'
            f'"resource":{{"attributes":{{"service.name":"s","host.name":"node-{number}"}}}}}}'
        )
    with logs.engine() as engine:
        rows = engine.rows("SELECT clock, span_count FROM clocks ORDER BY ALL")
        assert [tuple(row.values()) for row in rows] == [("node-1", 1), ("node-2", 1)]
        assert engine.rows("SELECT count(*) AS n FROM aligned_spans") == [{"n": 2}]

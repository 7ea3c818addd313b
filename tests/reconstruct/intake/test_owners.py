"""Owners of lines: each has one number, whoever asks."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from reconstruct.intake.owners import Owner, Owners

BARE = Owner('{"attributes":{}}', "a#", "a", None, None, None, None, None, None, None)


def named(name: str) -> Owner:
    return BARE._replace(service_name=name, instance=f"{name}#")


def test_an_owner_keeps_its_number() -> None:
    """New ones are told once; those that were known go on with theirs."""
    owners = Owners([(7, named("known"))])
    assert [owners.number(named(name)) for name in ("b", "known", "c", "b")] == [8, 7, 9, 8]
    assert list(owners.take_new()) == [(8, named("b")), (9, named("c"))]
    assert owners.number(named("d")) == 10
    assert list(owners.take_new()) == [(10, named("d"))]


def test_threads_agree() -> None:
    """An owner that two ask for at once is one owner."""
    owners = Owners()
    together = Barrier(4)

    def ask(_: int) -> list[int]:
        together.wait()
        return [owners.number(named(str(name))) for name in range(500)]

    with ThreadPoolExecutor(4) as threads:
        first, *others = threads.map(ask, range(4))
    assert sorted(first) == list(range(1, 501))
    assert all(numbers == first for numbers in others)
    assert len(list(owners.take_new())) == 500


def test_what_stood_before_the_line_tells_who_is_meant() -> None:
    """Host and pid of a wrapper, where the record itself names no instance and no process."""
    owner = BARE.of_process("node-1", 77)
    assert (owner.instance, owner.host_name, owner.process_pid) == ("a##node-1#77", "node-1", 77)
    assert BARE._replace(host_name="own").of_process("node-1", None).host_name == "own"
    for told in (BARE._replace(service_instance_id="1"), BARE._replace(process_pid=5)):
        assert told.of_process("node-1", 77) is told

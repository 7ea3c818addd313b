"""`reconstruct clocks`: each clock against its reference, and words for what is off."""

from pathlib import Path


def test_a_clock_that_is_behind_is_told(two_hosts, run):
    done = run("clocks", "logs")
    assert done.code == 0
    assert done.out.splitlines() == [
        "CLOCK    OFFSET        ±  METHOD     AGAINST  CALLS",
        "node-a     0 ns     0 ns  reference  -            -",
        "node-b  -3.50 s  11.0 ms  bounds     node-a       1",
    ]
    assert done.err.splitlines() == [
        "node-b was 3.50 s behind node-a (± 11.0 ms)",
        "NTP or PTP keeps clocks together; `chronyc tracking` on a host says how well",
        "`reconstruct show --align` draws spans where they belong",
    ]


def test_json_has_all_columns(two_hosts, run):
    done = run("clocks", "logs", "--json")
    assert done.err == ""
    assert done.json[1] == {
        "clock": "node-b",
        "offset_ns": -3_500_000_000,
        "uncertainty_ns": 10_999_999,
        "method": "bounds",
        "parent_clock": "node-a",
        "calls": 1,
        "contradicting_calls": 0,
        "excluded_calls": 0,
        "reference_clock": "node-a",
        "from_unix_nano": None,
        "until_unix_nano": None,
    }


def test_one_clock_is_nothing_to_compare(logs, run):
    done = run("clocks", "logs")
    assert done.out.splitlines()[1].split() == ["node-1", "0", "ns", "-", "alone", "-", "-"]
    assert done.err == "one clock: there is nothing to compare\n"


LINE = (
    '{{"trace_id":"{trace:032x}","span_id":"{span:016x}","parent_span_id":{parent},"name":"x",'
    '"kind":"{kind}","start_time_unix_nano":{start},"end_time_unix_nano":{end},'
    '"resource":{{"attributes":{{"service.name":"s","host.name":"{host}"}}}}}}\n'
)


def write_calls(*calls, server="y"):
    """Write calls from host x; each is client start and end, server start and end, in ns."""
    base, parent = 1_764_475_132_000_000_000, f'"{1:016x}"'
    with Path("logs", "more.log").open("a", encoding="utf-8") as file:
        for trace, (first, last, begin, finish) in enumerate(calls, 1):
            client = {"span": 1, "parent": "null", "kind": "CLIENT", "host": "x"}
            served = {"span": 2, "parent": parent, "kind": "SERVER", "host": server}
            file.write(LINE.format(trace=trace, start=base + first, end=base + last, **client))
            file.write(LINE.format(trace=trace, start=base + begin, end=base + finish, **served))


def test_clocks_that_agree_and_clocks_that_nothing_links(logs, run):
    """x and y call each other; node-1 calls nobody else."""
    write_calls((0, 100, 20, 70))
    done = run("clocks", "logs")
    assert done.err.splitlines() == [
        "no clock is off by a millisecond, as far as the calls tell",
        "no call tells anything of node-1",
    ]


def test_a_clock_that_was_set_has_a_row_for_each_stretch(two_hosts, run):
    second = 1_000_000_000
    write_calls((1, 101, 21, 71), (second, second + 101, 6 * second + 21, 6 * second + 71))
    done = run("clocks", "logs", "--limit", "4")
    left, _, words = done.err.splitlines()[:3]
    assert left == "… 1 more row; --limit 0 shows all"
    assert words == (
        "y was 5.00 s ahead of x (± 26 ns) at its worst; its offset changed, between 0 ns and "
        "5.00 s: a clock was set, or drifts"
    )
    assert done.out.splitlines()[0].split()[-2:] == ["FROM", "UNTIL"]


def test_calls_that_contradict_are_counted(two_hosts, run):
    ms = 1_000_000
    write_calls(
        *(
            (n * 1_000 * ms, n * 1_000 * ms + 101, begin, begin + 50)
            for n in range(60)
            for begin in (n * 1_000 * ms + (20, 5_000 * ms, 9_000 * ms)[n % 3],)
        )
    )
    done = run("clocks", "logs")
    assert " ODD" in done.out
    (words,) = (line for line in done.err.splitlines() if line.startswith("y "))
    assert words.startswith("y was 5.00 s ahead of x (± 5.00 s); ")
    assert words.endswith(
        "; 40 of 60 calls contradict that: servers that work on after their answer, or several "
        "machines under one name"
    )

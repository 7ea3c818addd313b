"""Trees that broke other readers: parents in a circle, spans that never ended, lost context."""

import re

import pytest

from reconstruct.export.otlp.encoding import span_message

TRACE = "0123456789abcdef" * 2
MS = 1_000_000
NOON = 1_748_779_200_000 * MS  # 2025-06-01T12:00:00Z


@pytest.fixture(scope="session")
def traced(line, at):
    """The line of a span of a service and a rollout; times in ms after noon, no end: it is open."""

    def write(number, parent, name, start, end, *, rollout=None, service="gym/agent", **more):
        more |= {"start_time": at(start), "end_time": None if end is None else at(end)}
        more["attributes"] = {} if rollout is None else {"nemo.gym.rollout.id": rollout}
        more["resource"] = {"attributes": {"service.name": service}}
        return line(number, parent, name=name, **more)

    return write


def test_c40_parents_in_a_circle(write, reconstruct, line, joined, read):
    """It ends, each span is there once, each circle is told once, a normal tree is untouched."""
    write(
        {
            "cycle.log": joined(
                line(1, 1, name="A"),
                line(2, 3, name="B"),
                line(3, 2, name="C"),
                line(4, 3, name="D"),
                line(5, name="rollout"),
                line(6, 5, name="E"),
                line(7, 9, name="X"),
                line(8, 7, name="Y"),
                line(9, 8, name="Z"),
            )
        }
    )
    with read() as found:
        tree = found.rows(
            "SELECT name, depth, cycle FROM spans JOIN span_tree USING (trace_id, span_id)"
        )
        assert sorted(row["name"] for row in tree) == [*"ABCDEXYZ", "rollout"]
        assert {row["name"]: row["depth"] for row in tree if not row["cycle"]}["E"] == 1
        told = found.findings("cycle")
        assert len(told) == 3
    shown = reconstruct("show", TRACE, ".")
    assert shown.code == 0
    bars = re.findall(r"(\w+) +gym/model +1\.00 ms", shown.out)
    assert sorted(bars) == [*"ABCDEXYZ", "rollout"]


class TestC42UnfinishedSpans:
    """What hangs is what is shown: how long, where, and that averages leave it out."""

    @pytest.fixture(autouse=True)
    def written(self, write, joined, traced):
        stuck, killed = {"rollout": "r-stuck"}, {"rollout": "r-killed", "trace_id": TRACE[::-1]}
        write(
            {
                "agent.log": joined(
                    traced(1, None, "rollout", 0, None, **stuck),
                    traced(2, 1, "model call", 1_000, 9_000, kind="CLIENT", **stuck),
                    traced(3, 1, "verify call", 10_000, None, kind="CLIENT", **stuck),
                    traced(4, 99, "model call", 2_000, 3_000, kind="CLIENT", **killed),
                ),
                "resources.log": joined(
                    traced(
                        5,
                        3,
                        "POST /verify",
                        10_005,
                        None,
                        kind="SERVER",
                        service="gym/math",
                        **stuck,
                    ),
                    traced(
                        6,
                        None,
                        "GET /health",
                        310_000,
                        310_001,
                        service="gym/math",
                        trace_id="f" * 32,
                    ),
                ),
            }
        )

    def test_ages_count_to_the_last_time_in_the_logs(self, read):
        with read() as found:
            rows = found.rows(
                "SELECT name, open_ns, state FROM spans WHERE end_time_unix_nano IS NULL"
            )
            assert {row["name"]: row["open_ns"] for row in rows} == {
                "rollout": 310_001 * MS,
                "verify call": 300_001 * MS,
                "POST /verify": 299_996 * MS,
            }
            assert {row["state"] for row in rows} == {"open"}
            (stuck,) = found.findings("stuck")
            assert stuck["place"] == "POST /verify in gym/math"
            assert "r-stuck" in stuck["message"]
            assert "299.996 s" in stuck["message"]
            (missing,) = found.findings("missing_root")
            assert "r-killed" in missing["message"]
            bounds = found.rows(
                "SELECT min(start_time_unix_nano) AS least, min(duration_ns) AS short FROM spans"
            )
            assert bounds == [{"least": NOON, "short": MS}]

    def test_averages_leave_them_out_and_say_so(self, reconstruct, read):
        """In SQL by what the columns are, in the summary in words."""
        with read() as found:
            averages = found.rows(
                "SELECT name, avg(duration_ns) AS mean, count(*) AS n FROM spans GROUP BY name"
            )
            means = {row["name"]: row["mean"] for row in averages}
            assert means == {
                "rollout": None,
                "verify call": None,
                "POST /verify": None,
                "model call": 4_500 * MS,
                "GET /health": MS,
            }
            (comment,) = found.rows(
                "SELECT comment FROM duckdb_columns() WHERE table_name = 'spans' "
                "AND column_name = 'duration_ns'"
            )
            assert "averages leave those out" in comment["comment"]
        summary = reconstruct("summary", ".").out
        assert "unfinished  3 spans; shares and self times leave them out\n" in summary
        shown = reconstruct("show", "r-stuck", ".").out
        assert shown.count("unfinished") == 5  # a line each, the head and the legend
        assert "open for 5 min 10 s" in shown
        assert reconstruct("doctor", ".").code == 1


class TestC57ContextLost:
    """A rollout over several traces is one picture that says where context was lost."""

    @pytest.fixture(autouse=True)
    def written(self, write, joined, traced):
        ray, run, model = {"rollout": "r-ray"}, {"trace_id": "b" * 32}, {"service": "gym/model"}
        other = {"rollout": "r-other"}
        server, client = {"kind": "SERVER"}, {"kind": "CLIENT"}
        answer, health = {"trace_id": "c" * 32}, {"trace_id": "d" * 32}
        write(
            {
                "driver.log": traced(1, None, "dispatch", 0, 6_000, service="gym/driver", **ray),
                "agent.log": joined(
                    traced(2, None, "POST /run", 1_000, 5_000, **ray, **run, **server),
                    traced(3, 2, "model call", 2_000, 3_000, **ray, **run, **client),
                    traced(4, 2, "model call", 3_000, 4_000, **other, **run, **client),
                ),
                "model.log": joined(
                    traced(5, None, "POST /v1", 2_100, 2_900, **ray, **answer, **model, **server),
                    traced(6, None, "GET /health", 0, 1, **health, **model, **server),
                ),
            }
        )

    def test_the_rollout_is_whole_and_its_breaks_are_told(self, reconstruct, read):
        """Four spans of three traces over six seconds; between which services, twice."""
        with read() as found:
            rows = found.rows("SELECT * FROM rollouts ORDER BY rollout_id")
            counted = [
                (row["rollout_id"], row["trace_count"], row["span_count"], row["duration_ns"])
                for row in rows
            ]
            assert counted == [("r-other", 1, 1, 1_000 * MS), ("r-ray", 3, 4, 6_000 * MS)]
            told = found.findings("split_trace")
            assert [row["place"] for row in told] == [
                "gym/driver -> POST /run in gym/agent",
                "gym/agent -> POST /v1 in gym/model",
            ]
            assert all("r-ray" in row["message"] for row in told)
            assert "from gym/driver to gym/agent" in told[0]["hint"]
            assert "from gym/agent to gym/model" in told[1]["hint"]
        shown = reconstruct("show", "r-ray", ".")
        assert shown.code == 0
        assert "6.00 s   3 traces   4 spans   3 services" in shown.out
        assert "r-other" not in shown.out
        assert reconstruct("doctor", ".").code == 1

    def test_no_parent_is_invented(self, read):
        """Not in the rows, not in the tree, not in what is exported."""
        with read() as found:
            rows = found.rows("SELECT * FROM spans")
            parents = {row["span_id"]: row["parent_span_id"] for row in rows}
            written = {1: None, 2: None, 3: 2, 4: 2, 5: None, 6: None}
            assert parents == {
                f"{number:016x}": parent and f"{parent:016x}" for number, parent in written.items()
            }
            sent = {each.span_id.hex(): each.parent_span_id for each in map(span_message, rows)}
            assert sent == {own: bytes.fromhex(parent or "") for own, parent in parents.items()}
            depths = found.rows("SELECT count(*) AS n FROM span_tree WHERE depth = 0")
            assert depths == [{"n": 4}]

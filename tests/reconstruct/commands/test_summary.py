"""`reconstruct summary`: what the logs hold, where the time went, what to look at next."""


def test_it_says_what_there_is_and_where_the_time_went(logs, run):
    done = run("summary", "logs")
    assert (done.code, done.err) == (0, "")
    overview, slowest, names = done.out.split("\n\n")
    assert [line.split(maxsplit=1) for line in overview.splitlines()[1:]] == [
        ["found", "9 spans in 3 traces, 3 rollouts of 1 run, by 3 processes"],
        ["services", "agent, driver, model"],
        ["time", "2025-11-30T03:58:52.000Z, 230 ms"],
        ["errors", "0 spans with errors"],
        ["unfinished", "0 spans"],
        ["findings", "0 errors, 0 warnings, 0 notes"],
    ]
    assert overview.startswith("read        3 files, ")
    assert overview.splitlines()[0].endswith("15 lines: 9 span, 6 process")
    assert slowest.splitlines() == [
        "SLOWEST ROLLOUTS  DURATION  SPANS  ERRORS  UNFINISHED  WHERE ITS TIME WENT",
        "1-0                50.0 ms      3       0           0  model 92 %, agent 4 %, driver 4 %",
        "2-0                30.0 ms      3       0           0  model 87 %, agent 7 %, driver 7 %",
        "0-0                10.0 ms      3       0           0  model 60 %, agent 20 %, driver 20 %",  # noqa: E501  # as printed
    ]
    assert names.splitlines()[1].split() == [
        *("gym.model.call", "model", "3"),
        *("78.0", "ms", "87", "%"),
    ]


def test_json_is_one_object_with_exact_numbers(logs, run):
    facts = run("summary", "logs", "--json").json
    assert facts["span_count"] == 9
    assert facts["line_count"] == sum(facts["line_classes"].values()) == 15
    assert facts["slowest"][0]["services"][0] == {
        "service_name": "gym/model",
        "self_time_ns": 46_000_000,
    }
    assert sum(row["share"] for row in facts["names"]) == 1.0
    assert facts["findings"] == {"error": 0, "warning": 0, "note": 0}


def test_it_is_the_default(logs, run):
    assert run("logs").out == run("summary", "logs").out


def test_trouble_is_pointed_out_with_the_next_step(logs, run):
    logs["driver"].span(0xC0, 0xC01, 0xBAD, "orphan", 300, 400, status={"code": "ERROR"})
    logs["driver"].write('{"record_type":"span","seq":99,"trace_id":"ab')
    text = run("logs").out
    assert "1 span with errors" in text
    assert "damaged     1 line; see `reconstruct lines`" in text
    assert "`reconstruct doctor` says more" in text
    assert "FIRST FINDINGS" in text


def test_without_rollouts_the_slowest_traces_are_listed(write_logs, write, run):
    logs = write_logs()
    write(logs, 0xA1, None, 0, 10)
    assert f"{0xA1:032x}" in run("logs").out.partition("SLOWEST TRACES")[2]


def test_logs_without_spans_say_so(tmp_path, run):
    (tmp_path / "a.log").write_text("text\n")
    done = run(tmp_path)
    assert (done.code, done.out) == (
        0,
        "read        1 file, 5 B, 1 line: 1 text\nfound       no spans\n",
    )


def test_many_services_are_counted_rather_than_listed(write_logs, run):
    log = write_logs()["driver"]
    for number in range(10):
        log._service = {"service.name": f"s{number}", "service.instance.id": f"i{number}"}
        log.span(0xA1, number + 1, None, "work", 0, 10)
    assert "services    s0, s1, s2, s3, s4, s5, s6, s7, 2 more" in run("logs").out

"""Each planted fault leaves the marks that tell what happened and where."""

from statistics import median


def test_error_tool_fails_calls_and_no_rollout(faulty):
    """Some tool calls are errors with their exception; the model copes."""
    assert faulty.exit_code == 0, faulty.stderr
    assert "16 of 16 rollouts done" in faulty.stderr
    tools = faulty.spans_named("POST /get_weather", "SERVER")
    failed = [span for span in tools if span["status"]["code"] == "ERROR"]
    assert (len(tools), len(failed)) == (16, 5)
    for span in failed:
        assert span["attributes"]["http.response.status_code"] == 500
        (event,) = span["events"]
        assert event["attributes"]["exception.type"] == "RuntimeError"


def test_slow_host_is_one_of_two_instances(faulty):
    """The model's second instance takes several times as long at the median."""
    seconds = {instance: [] for instance in faulty.instances_of("gym/model")}
    for span in faulty.spans_named("gym.model.responses", "INTERNAL"):
        instance = span["resource"]["attributes"]["service.instance.id"]
        seconds[instance].append(span["end_time_unix_nano"] - span["start_time_unix_nano"])
    fast, slow = sorted(median(times) for times in seconds.values())
    assert slow > 3 * fast
    assert (faulty.folder / "model-2.log").stat().st_size > 0


def test_bypass_breaks_the_trace_at_the_model(faulty):
    """A bypassed call is a SERVER root in the model that still names its rollout."""
    for spans in faulty.rollouts().values():
        assert len({span["trace_id"] for span in spans}) == 3
        roots = [span for span in spans if span["parent_span_id"] is None]
        assert sorted((faulty.service(root), root["kind"]) for root in roots) == [
            ("gym/driver", "CLIENT"),
            ("gym/model", "SERVER"),
            ("gym/model", "SERVER"),
        ]


def test_hang_model_leaves_the_hung_call_open_in_the_log(hung):
    """The hung call is in the log by its start alone; its server had to be killed."""
    run = hung
    assert run.exit_code == 0, run.stderr
    assert "7 of 8 rollouts done" in run.stderr
    assert {(run.service(span), span["name"]) for span in run.unfinished} == {
        ("gym/model", "POST /v1/responses"),
        ("gym/model", "gym.model.responses"),
    }
    (instance,) = run.instances_of("gym/model")
    states = [
        record["state"] for record in run.of_type("process") if run.service(record) == "gym/model"
    ]
    assert states == ["started"]
    assert {span["resource"]["attributes"]["service.instance.id"] for span in run.unfinished} == {
        instance
    }


def test_kill_loses_nothing_that_had_ended(killed):
    """The killed agent's ended spans are all there, what it was doing is there as open spans."""
    run = killed
    assert run.exit_code == 0, run.stderr
    assert "ended early: agent" in run.stderr
    assert "SIGKILL" in run.stderr
    (instance,) = run.instances_of("gym/agent")
    records = run.by_instance()[instance]
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert "gym.rollout" in {
        span["name"] for span in run.unfinished if run.service(span) == "gym/agent"
    }
    answered = {
        span["parent_span_id"]
        for span in run.spans
        if span["kind"] == "SERVER" and run.service(span) == "gym/agent"
    }
    done = [
        span
        for span in run.spans
        if (run.service(span), span["kind"]) == ("gym/environment", "CLIENT")
        and span["attributes"].get("http.response.status_code") == 200
    ]
    assert len(done) >= 8
    assert {span["span_id"] for span in done} <= answered

"""`gymlog demo` without faults: real processes, and what a healthy run leaves in its folder.

driver        HTTP POST ┐
environment             └ POST /run ─ HTTP POST ┐
agent                     POST /run ─ gym.rollout ─┬ HTTP POST ┐
agent          POST /v1/responses ─ gym.agent.responses ─┬ HTTP POST × 3
model, resources                     POST /v1/responses × 2, POST /get_weather, POST /verify
"""

from collections import Counter

SERVICES = {f"gym/{name}" for name in ("driver", "environment", "agent", "model", "resources")}
PROCESSES = SERVICES | {"gym/supervisor"}
OF_NO_ROLLOUT = ("gym.job", "gym.startup", "gym.server.startup")


def test_a_healthy_run_ends_well(healthy):
    """All rollouts are done, every file is there, and no process had anything to complain about."""
    assert healthy.exit_code == 0, healthy.stderr
    assert "8 of 8 rollouts done" in healthy.stderr
    logs = {path.name for path in healthy.folder.glob("*.log")}
    assert logs == {f"{name.removeprefix('gym/')}.log" for name in PROCESSES}
    complaints = {path.name: path.read_text() for path in healthy.folder.glob("*.stderr")}
    assert set(complaints.values()) == {""}, complaints


def test_each_rollout_is_one_trace_across_the_fleet(healthy):
    """Propagation holds over every hop: one root, all five services, no parent missing."""
    rollouts = healthy.rollouts()
    assert set(rollouts) == {f"{task}-{index}" for task in range(2) for index in range(4)}
    for spans in rollouts.values():
        assert len({span["trace_id"] for span in spans}) == 1
        assert {healthy.service(span) for span in spans} == SERVICES
        ids = {span["span_id"] for span in spans}
        parents = Counter(span["parent_span_id"] in ids for span in spans)
        assert parents == {True: len(spans) - 1, False: 1}
        assert [span["name"] for span in spans if span["parent_span_id"] is None] == ["HTTP POST"]


def test_each_line_of_a_rollout_names_it(healthy):
    """Spans, open spans and log records in a rollout's trace carry its id, and only its own."""
    of_trace = {spans[0]["trace_id"]: rollout for rollout, spans in healthy.rollouts().items()}
    records = [record for record in healthy.records if "trace_id" in record]
    assert records
    for record in records:
        assert record["attributes"]["nemo.gym.rollout.id"] == of_trace[record["trace_id"]]


def test_the_spans_of_a_rollout_are_the_published_ones(healthy):
    """Per rollout: every gym.* span, two model calls, one tool call, one verification."""
    for spans in healthy.rollouts().values():
        assert Counter(span["name"] for span in spans if span["kind"] != "CLIENT") == {
            "POST /run": 2,
            "gym.rollout": 1,
            "POST /v1/responses": 3,
            "gym.agent.responses": 1,
            "gym.model.responses": 2,
            "POST /get_weather": 1,
            "POST /verify": 1,
            "gym.verify": 1,
        }


def test_model_spans_say_what_the_call_cost(healthy):
    """gym.model.responses carries model and tokens, streamed or not."""
    spans = healthy.spans_named("gym.model.responses", "INTERNAL")
    assert len(spans) == 16
    for span in spans:
        assert span["attributes"]["gen_ai.request.model"] == "policy"
        assert span["attributes"]["gen_ai.usage.input_tokens"] > 0
        assert span["attributes"]["gen_ai.usage.output_tokens"] > 0


def test_a_rollout_stays_within_its_budget(healthy):
    """With per_rollout: at most 22 lines and 11 KB of spans."""
    size = Counter()
    for line, record in zip(healthy.lines, healthy.records, strict=True):
        if record["record_type"] == "span":
            size[record["trace_id"]] += len(line)
    assert len(size) == 8
    assert max(size.values()) <= 11 * 1024
    assert max(map(len, healthy.rollouts().values())) <= 22


def test_no_line_is_missing_and_each_process_says_goodbye(healthy):
    """`seq` counts without a gap from 0; `started` comes first, `stopped` last and counts right."""
    instances = healthy.by_instance()
    assert len(instances) == len(PROCESSES)
    for records in instances.values():
        assert [record["seq"] for record in records] == list(range(len(records)))
        assert [records[0].get("state"), records[-1].get("state")] == ["started", "stopped"]
        written = sum(record["record_type"] == "span" for record in records)
        last = records[-1]
        assert (last["spans_written"], last["records_dropped"], last["open_spans"]) == (
            written, 0, 0,
        )  # fmt: skip


def test_the_default_preset_is_one_trace_under_the_job(crowded):
    """gym.job is the root of all rollouts, and each one's first span is its child."""
    assert crowded.exit_code == 0, crowded.stderr
    assert len({span["trace_id"] for span in crowded.spans}) == 2
    roots = {span["name"]: span for span in crowded.spans if span["parent_span_id"] is None}
    assert set(roots) == {"gym.job", "gym.startup"}
    job = roots["gym.job"]
    assert "nemo.gym.rollout.id" not in job["attributes"]
    rollouts = [span for spans in crowded.rollouts().values() for span in spans]
    assert {span["trace_id"] for span in rollouts} == {job["trace_id"]}
    children = [span for span in crowded.spans if span["parent_span_id"] == job["span_id"]]
    assert len({span["attributes"]["nemo.gym.rollout.id"] for span in children}) == 12


def test_a_rollout_of_the_default_preset_stays_within_its_budget(crowded):
    """With default: at most 16 lines and 8 KB of spans."""
    size = Counter()
    for line, record in zip(crowded.lines, crowded.records, strict=True):
        if record["record_type"] == "span" and not record["name"].startswith(OF_NO_ROLLOUT):
            size[record["attributes"]["nemo.gym.rollout.id"]] += len(line)
    assert len(size) == 12
    assert max(map(len, crowded.rollouts().values())) <= 16
    assert max(size.values()) <= 8 * 1024


def test_workers_are_instances_of_their_own(crowded):
    """Two processes write one log: each has its own instance id, count and goodbye."""
    for name in SERVICES - {"gym/driver"}:
        assert len(set(crowded.instances_of(name))) == 2
    for records in crowded.by_instance().values():
        assert [record["seq"] for record in records] == list(range(len(records)))
        assert records[-1]["state"] == "stopped"
    resources = [record["resource"]["attributes"] for record in crowded.of_type("process")]
    workers = [resource for resource in resources if resource.get("nemo.gym.worker")]
    assert {resource["service.name"] for resource in workers} == SERVICES - {"gym/driver"}

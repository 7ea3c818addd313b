-- One row is a call that the work of a rollout made of a model, a tool, a verification or a sandbox:
-- the outermost span of that kind, with the CLIENT span around it if there is one.
CREATE VIEW rollout_calls AS
WITH
call AS (
    SELECT
        call_node AS node,
        min((span.start_time_unix_nano, span.span_id, work.node))[3] AS half,
        min(work.call_work) AS kind
    FROM _span_works AS work
    JOIN spans AS span ON span.rowid = work.node
    WHERE call_node IS NOT NULL
    GROUP BY call_node
)
SELECT
    member.run_id,
    member.rollout_id,
    span.trace_id,
    span.span_id,
    span.occurrence,
    call.kind,
    nullif(
        regexp_extract(
            CASE
                WHEN half.kind = 'INTERNAL' THEN half.name
                ELSE _path_of_request(half.name, half.attributes)
            END,
            '([^/ ]*)/?$',
            1
        ),
        ''
    ) AS callee,
    span.start_time_unix_nano,
    member.seen_until_unix_nano AS end_time_unix_nano,
    member.seen_until_unix_nano - span.start_time_unix_nano AS duration_ns,
    span.status_code IS NOT DISTINCT FROM 'ERROR' AS has_failed
FROM call
JOIN spans AS span ON span.rowid = call.node
JOIN spans AS half ON half.rowid = call.half
JOIN _rollout_spans AS member ON member.node = call.node;

COMMENT ON VIEW rollout_calls IS 'One row is a call that the work of a rollout made of a model, a tool, a verification or a sandbox: the outermost span of that kind, with the CLIENT span around it if there is one. Tries of a call are one call; what these call in turn is left out.';
COMMENT ON COLUMN rollout_calls.run_id IS 'nemo.run.id; rollout ids repeat from run to run.';
COMMENT ON COLUMN rollout_calls.rollout_id IS 'nemo.gym.rollout.id.';
COMMENT ON COLUMN rollout_calls.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN rollout_calls.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN rollout_calls.occurrence IS 'occurrence of the span in spans.';
COMMENT ON COLUMN rollout_calls.kind IS 'What was called: model, tool, verify or sandbox.';
COMMENT ON COLUMN rollout_calls.callee IS 'Last part of the path or name that was called: the tool''s name; null without one.';
COMMENT ON COLUMN rollout_calls.start_time_unix_nano IS 'Start, ns since 1970.';
COMMENT ON COLUMN rollout_calls.end_time_unix_nano IS 'End, ns since 1970; of an unfinished call as far as it was seen.';
COMMENT ON COLUMN rollout_calls.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN rollout_calls.has_failed IS 'Whether its status is ERROR.';

-- One row is a rollout: what its wall time was spent on, and on what more than the median rollout of
-- its run.
--
-- What is named as a reason is at least a twentieth of the median rollout's duration; the three
-- largest are.
CREATE VIEW rollout_shares AS
WITH
share AS MATERIALIZED (
    FROM _rollout_shares
),
median AS (
    SELECT
        run_id,
        quantile_disc(duration_ns, 0.5) AS duration_ns,
        quantile_disc(model_ns, 0.5) AS model_ns,
        quantile_disc(tool_ns, 0.5) AS tool_ns,
        quantile_disc(verify_ns, 0.5) AS verify_ns,
        quantile_disc(sandbox_ns, 0.5) AS sandbox_ns,
        quantile_disc(agent_ns, 0.5) AS agent_ns,
        quantile_disc(queue_ns, 0.5) AS queue_ns,
        quantile_disc(client_overhead_ns, 0.5) AS client_overhead_ns,
        quantile_disc(event_loop_lag_ns, 0.5) AS event_loop_lag_ns,
        quantile_disc(retry_ns, 0.5) AS retry_ns,
        quantile_disc(unaccounted_ns, 0.5) AS unaccounted_ns,
        quantile_disc(turns, 0.5) AS turns,
        quantile_disc(tool_calls, 0.5) AS tool_calls
    FROM share
    GROUP BY run_id
),
reason AS (
    SELECT
        share.run_id,
        share.rollout_id,
        median.duration_ns // 20 AS least_ns,
        unnest([
            {what: 'model', excess_ns: share.model_ns - median.model_ns, note: _more_of(share.turns - median.turns, 'turn', 'turns')},
            {what: 'tool' || coalesce(' ' || share.slowest_tool, ''), excess_ns: share.tool_ns - median.tool_ns, note: _more_of(share.tool_calls - median.tool_calls, 'call', 'calls')},
            {what: 'verify', excess_ns: share.verify_ns - median.verify_ns, note: ''},
            {what: 'sandbox', excess_ns: share.sandbox_ns - median.sandbox_ns, note: ''},
            {what: 'own work', excess_ns: share.agent_ns - median.agent_ns, note: ''},
            {what: 'queue', excess_ns: share.queue_ns - median.queue_ns, note: ''},
            {what: 'client overhead', excess_ns: share.client_overhead_ns - median.client_overhead_ns, note: ''},
            {what: 'event loop lag', excess_ns: share.event_loop_lag_ns - median.event_loop_lag_ns, note: ''},
            {what: CASE WHEN share.retries = 1 THEN '1 retry' ELSE share.retries || ' retries' END, excess_ns: share.retry_ns - median.retry_ns, note: ''},
            {what: 'unaccounted', excess_ns: share.unaccounted_ns - median.unaccounted_ns, note: ''}
        ]) AS more
    FROM share
    JOIN median ON median.run_id IS NOT DISTINCT FROM share.run_id
),
named AS (
    SELECT
        run_id,
        rollout_id,
        string_agg(
            more.what || ' +' || _duration_words(more.excess_ns) || more.note,
            ', '
            ORDER BY more.excess_ns DESC, more.what
        ) AS why
    FROM (
        FROM reason
        WHERE more.excess_ns > least_ns
        QUALIFY row_number() OVER (
            PARTITION BY run_id, rollout_id
            ORDER BY more.excess_ns DESC, more.what
        ) <= 3
    )
    GROUP BY run_id, rollout_id
)
SELECT
    share.run_id,
    share.rollout_id,
    share.attempt,
    share.outcome,
    share.agent_name,
    share.resources_name,
    share.start_time_unix_nano,
    share.end_time_unix_nano,
    share.duration_ns,
    share.model_ns,
    share.tool_ns,
    share.verify_ns,
    share.sandbox_ns,
    share.agent_ns,
    share.queue_ns,
    share.client_overhead_ns,
    share.event_loop_lag_ns,
    share.retry_ns,
    share.unaccounted_ns,
    share.turns,
    share.tool_calls,
    share.failed_calls,
    share.retries,
    share.trace_count,
    share.span_count,
    share.error_count,
    share.open_count,
    share.model_sum_ns,
    share.model_wall_ns,
    share.tool_sum_ns,
    share.tool_wall_ns,
    share.slowest_tool,
    share.model_call_p50_ns,
    share.model_call_max_ns,
    share.time_to_first_token_p50_ns,
    share.captured_calls,
    share.input_tokens,
    share.cached_input_tokens,
    share.output_tokens,
    share.reasoning_tokens,
    named.why
FROM share
LEFT JOIN named
    ON named.run_id IS NOT DISTINCT FROM share.run_id
    AND named.rollout_id = share.rollout_id;

COMMENT ON VIEW rollout_shares IS 'One row is a rollout: what its wall time was spent on, and on what more than the median rollout of its run.';
COMMENT ON COLUMN rollout_shares.run_id IS 'nemo.run.id; rollout ids repeat from run to run.';
COMMENT ON COLUMN rollout_shares.rollout_id IS 'nemo.gym.rollout.id.';
COMMENT ON COLUMN rollout_shares.attempt IS 'Number in the -a suffix of the rollout''s id; 0 without one.';
COMMENT ON COLUMN rollout_shares.outcome IS 'failure: its first span or gym.rollout has status ERROR; unfinished: its first span has not ended; else success.';
COMMENT ON COLUMN rollout_shares.agent_name IS 'nemo.gym.server.name of its agent server; null when none or several.';
COMMENT ON COLUMN rollout_shares.resources_name IS 'nemo.gym.server.name of its resources server, the environment; null when none or several.';
COMMENT ON COLUMN rollout_shares.start_time_unix_nano IS 'Earliest start, ns since 1970.';
COMMENT ON COLUMN rollout_shares.end_time_unix_nano IS 'Latest end, ns since 1970; an unfinished span counts as far as it was seen.';
COMMENT ON COLUMN rollout_shares.duration_ns IS 'Wall time: end less start, ns. The next ten add up to it.';
COMMENT ON COLUMN rollout_shares.model_ns IS 'Ns in models: the work of model servers and of what they call, of spans of model calls, and model calls whose other half is not in the input.';
COMMENT ON COLUMN rollout_shares.tool_ns IS 'Ns in tools: resources servers but for /verify, execute_tool spans, and whatever else an agent calls.';
COMMENT ON COLUMN rollout_shares.verify_ns IS 'Ns in verifications: all below /verify or gym.verify, calls of a judge included.';
COMMENT ON COLUMN rollout_shares.sandbox_ns IS 'Ns in gym.sandbox spans and servers of sandboxes, whoever uses them.';
COMMENT ON COLUMN rollout_shares.agent_ns IS 'Ns of the rollout''s own work, in driver, environment and agent servers, while no model, tool or verification was under way.';
COMMENT ON COLUMN rollout_shares.queue_ns IS 'Ns in calls that had not begun on the other side: waiting for a connection or a turn, and the way there. An estimate where clocks differ.';
COMMENT ON COLUMN rollout_shares.client_overhead_ns IS 'Ns in calls from then on, outside of what the other side did: the way back, reading the answer.';
COMMENT ON COLUMN rollout_shares.event_loop_lag_ns IS 'Ns in processes whose event loop was stalled by another span''s work; at least so much, since only stalls that were logged count.';
COMMENT ON COLUMN rollout_shares.retry_ns IS 'Ns in tries that failed and were followed by another try of the same call, pauses included.';
COMMENT ON COLUMN rollout_shares.unaccounted_ns IS 'Ns in none of the rollout''s spans, or in servers of which nothing tells what they do.';
COMMENT ON COLUMN rollout_shares.turns IS 'Model calls that the rollout''s own work made; those of a tool or a judge are theirs.';
COMMENT ON COLUMN rollout_shares.tool_calls IS 'Tool calls that the rollout''s own work made.';
COMMENT ON COLUMN rollout_shares.failed_calls IS 'Calls of models, tools, verifications and sandboxes with status ERROR.';
COMMENT ON COLUMN rollout_shares.retries IS 'Tries beyond the first of any call: http.request.resend_count, else failed halves on the other side that another followed.';
COMMENT ON COLUMN rollout_shares.trace_count IS 'Traces that hold a span of it.';
COMMENT ON COLUMN rollout_shares.span_count IS 'Spans with its id; those without any count for the nearest ancestor with one, else for the only rollout of the trace.';
COMMENT ON COLUMN rollout_shares.error_count IS 'Spans with status ERROR.';
COMMENT ON COLUMN rollout_shares.open_count IS 'Unfinished spans, open or lost.';
COMMENT ON COLUMN rollout_shares.model_sum_ns IS 'Durations of its model calls, waiting included, added up, ns: more than model_wall_ns where they overlap.';
COMMENT ON COLUMN rollout_shares.model_wall_ns IS 'Time in which at least one model call was under way, ns: overlaps count once.';
COMMENT ON COLUMN rollout_shares.tool_sum_ns IS 'Durations of its tool calls added up, ns.';
COMMENT ON COLUMN rollout_shares.tool_wall_ns IS 'Time in which at least one tool call was under way, ns: overlaps count once.';
COMMENT ON COLUMN rollout_shares.slowest_tool IS 'The tool of its longest tool call; null without one.';
COMMENT ON COLUMN rollout_shares.model_call_p50_ns IS 'Median duration of its model calls, ns: as captured, else of the calls'' spans.';
COMMENT ON COLUMN rollout_shares.model_call_max_ns IS 'Duration of its longest model call, ns, from the same source.';
COMMENT ON COLUMN rollout_shares.time_to_first_token_p50_ns IS 'Median time to the first token, ns; null without captures.';
COMMENT ON COLUMN rollout_shares.captured_calls IS 'Captured model calls (model_calls).';
COMMENT ON COLUMN rollout_shares.input_tokens IS 'Tokens of all prompts: as captured, else gen_ai.usage.* of gym.model spans, else of other spans of model calls; null without any.';
COMMENT ON COLUMN rollout_shares.cached_input_tokens IS 'Those of them that came from a cache, from the same source.';
COMMENT ON COLUMN rollout_shares.output_tokens IS 'Tokens of all answers, from the same source.';
COMMENT ON COLUMN rollout_shares.reasoning_tokens IS 'Those of them that were reasoning; null without captures.';
COMMENT ON COLUMN rollout_shares.why IS 'What it spent more on than the median rollout of its run, up to three kinds of at least 5 % of that one''s duration; null when there is none.';

-- One row is a rollout: what its wall time was spent on, and on what more than the median rollout of
-- its run.
--
-- What is named as a reason is more than a twentieth of the median rollout's duration; the three
-- largest are named.
CREATE VIEW rollout_shares AS
WITH
spent AS (
    SELECT
        run_id,
        rollout_id,
        sum(end_time - start_time) FILTER (spent_on = 'model')::BIGINT AS model_ns,
        sum(end_time - start_time) FILTER (spent_on = 'tool')::BIGINT AS tool_ns,
        sum(end_time - start_time) FILTER (spent_on = 'verify')::BIGINT AS verify_ns,
        sum(end_time - start_time) FILTER (spent_on = 'sandbox')::BIGINT AS sandbox_ns,
        sum(end_time - start_time) FILTER (spent_on = 'agent')::BIGINT AS agent_ns,
        sum(end_time - start_time) FILTER (spent_on = 'queue')::BIGINT AS queue_ns,
        sum(end_time - start_time) FILTER (spent_on = 'client_overhead')::BIGINT
            AS client_overhead_ns,
        sum(end_time - start_time) FILTER (spent_on = 'event_loop_lag')::BIGINT
            AS event_loop_lag_ns,
        sum(end_time - start_time) FILTER (spent_on = 'retry')::BIGINT AS retry_ns,
        sum(end_time - start_time) FILTER (spent_on = 'unaccounted')::BIGINT AS unaccounted_ns,
        arg_max(culprit, (end_time - start_time, start_time)) AS culprit
    FROM _rollout_work
    GROUP BY run_id, rollout_id
),
culprit AS (
    SELECT
        rowid AS node,
        _span_label(name, service_name) || coalesce(', rollout ' || rollout_id, '') AS label
    FROM spans
    WHERE rowid IN (
        SELECT culprit
        FROM spent
    )
),
placed_call AS (
    SELECT
        run_id,
        rollout_id,
        kind,
        callee,
        has_failed,
        start_time_unix_nano AS start_time,
        end_time_unix_nano AS end_time,
        duration_ns,
        max(end_time_unix_nano) OVER (
            PARTITION BY run_id, rollout_id, kind
            ORDER BY start_time_unix_nano, end_time_unix_nano
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_until
    FROM rollout_calls
),
calls AS (
    SELECT
        run_id,
        rollout_id,
        count(*) FILTER (kind = 'model') AS turns,
        count(*) FILTER (kind = 'tool') AS tool_calls,
        count(*) FILTER (has_failed) AS failed_calls,
        sum(duration_ns) FILTER (kind = 'model')::BIGINT AS model_sum_ns,
        sum(
            greatest(end_time - greatest(start_time, coalesce(covered_until, start_time)), 0)
        ) FILTER (kind = 'model')::BIGINT AS model_wall_ns,
        sum(duration_ns) FILTER (kind = 'tool')::BIGINT AS tool_sum_ns,
        sum(
            greatest(end_time - greatest(start_time, coalesce(covered_until, start_time)), 0)
        ) FILTER (kind = 'tool')::BIGINT AS tool_wall_ns,
        quantile_disc(duration_ns, 0.5) FILTER (kind = 'model') AS model_call_p50_ns,
        max(duration_ns) FILTER (kind = 'model') AS model_call_max_ns,
        max((duration_ns, callee)) FILTER (kind = 'tool' AND callee IS NOT NULL) AS slowest_tool
    FROM placed_call
    GROUP BY run_id, rollout_id
),
retries AS (
    SELECT
        member.run_id,
        member.rollout_id,
        sum(work.retries)::BIGINT AS retries
    FROM _span_works AS work
    JOIN _rollout_spans AS member USING (node)
    WHERE work.retries > 0
    GROUP BY ALL
),
capture AS (
    SELECT
        run_id,
        rollout_id,
        count(*) AS captured_calls,
        sum(input_tokens)::BIGINT AS input_tokens,
        sum(cached_input_tokens)::BIGINT AS cached_input_tokens,
        sum(output_tokens)::BIGINT AS output_tokens,
        sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
        quantile_disc(duration_ns, 0.5) AS model_call_p50_ns,
        max(duration_ns) AS model_call_max_ns,
        quantile_disc(time_to_first_token_ns, 0.5) AS time_to_first_token_p50_ns
    FROM model_calls
    GROUP BY run_id, rollout_id
),
-- One call may have tokens on several spans: those that the model server wrote count, else those of
-- clients.
token_span AS (
    SELECT
        member.run_id,
        member.rollout_id,
        TRY_CAST(
            span.attributes->>[
                'gen_ai.usage.input_tokens',
                'gen_ai.usage.cache_read.input_tokens',
                'gen_ai.usage.output_tokens'
            ] AS INTEGER[]
        ) AS tokens,
        CASE
            WHEN span.name LIKE 'gym.model.%' THEN 1
            WHEN span.kind = 'CLIENT' THEN 2
            ELSE 3
        END AS rank
    FROM spans AS span
    JOIN _rollout_spans AS member ON member.node = span.rowid
    WHERE contains(span.attributes::VARCHAR, '"gen_ai.usage.')
        AND (
            span.name LIKE 'gym.model.%'
            OR _work_of_operation(span.attributes) = 'model'
        )
),
usage AS (
    SELECT
        run_id,
        rollout_id,
        sum(tokens[1])::BIGINT AS input_tokens,
        sum(tokens[2])::BIGINT AS cached_input_tokens,
        sum(tokens[3])::BIGINT AS output_tokens
    FROM (
        FROM token_span
        QUALIFY rank = min(rank) OVER (PARTITION BY run_id, rollout_id)
    )
    GROUP BY run_id, rollout_id
),
server AS (
    SELECT
        member.run_id,
        member.rollout_id,
        CASE
            WHEN min(span.server_name) FILTER (span.server_type = 'responses_api_agents')
                = max(span.server_name) FILTER (span.server_type = 'responses_api_agents')
            THEN min(span.server_name) FILTER (span.server_type = 'responses_api_agents')
        END AS agent_name,
        CASE
            WHEN min(span.server_name) FILTER (span.server_type = 'resources_servers')
                = max(span.server_name) FILTER (span.server_type = 'resources_servers')
            THEN min(span.server_name) FILTER (span.server_type = 'resources_servers')
        END AS resources_name
    FROM _rollout_spans AS member
    JOIN spans AS span ON span.rowid = member.node
    GROUP BY ALL
),
broken AS (
    SELECT
        member.run_id,
        member.rollout_id,
        min((
            member.start_time_unix_nano,
            -member.seen_until_unix_nano,
            member.span_id,
            span.occurrence,
            member.state <> 'finished'
        ))[5] AS is_unfinished,
        min((
            member.start_time_unix_nano,
            -member.seen_until_unix_nano,
            member.span_id,
            span.occurrence,
            member.status_code
        ))[5] = 'ERROR' OR bool_or(span.name = 'gym.rollout' AND span.status_code = 'ERROR')
            AS has_failed
    FROM _rollout_spans AS member
    JOIN spans AS span ON span.rowid = member.node
    JOIN _rollout_traces AS part
        ON part.run_id IS NOT DISTINCT FROM member.run_id
        AND part.rollout_id = member.rollout_id
        AND (part.error_count > 0 OR part.open_count > 0)
    GROUP BY ALL
),
share AS MATERIALIZED (
    SELECT
        rollout.run_id,
        rollout.rollout_id,
        coalesce(nullif(regexp_extract(rollout.rollout_id, '-a([0-9]{1,9})$', 1), '')::BIGINT, 0)
            AS attempt,
        CASE
            WHEN broken.is_unfinished THEN 'unfinished'
            WHEN broken.has_failed THEN 'failure'
            ELSE 'success'
        END AS outcome,
        server.agent_name,
        server.resources_name,
        rollout.start_time_unix_nano,
        rollout.end_time_unix_nano,
        rollout.duration_ns,
        coalesce(spent.model_ns, 0) AS model_ns,
        coalesce(spent.tool_ns, 0) AS tool_ns,
        coalesce(spent.verify_ns, 0) AS verify_ns,
        coalesce(spent.sandbox_ns, 0) AS sandbox_ns,
        coalesce(spent.agent_ns, 0) AS agent_ns,
        coalesce(spent.queue_ns, 0) AS queue_ns,
        coalesce(spent.client_overhead_ns, 0) AS client_overhead_ns,
        coalesce(spent.event_loop_lag_ns, 0) AS event_loop_lag_ns,
        culprit.label AS stalled_by,
        coalesce(spent.retry_ns, 0) AS retry_ns,
        coalesce(spent.unaccounted_ns, 0) AS unaccounted_ns,
        coalesce(calls.turns, 0) AS turns,
        coalesce(calls.tool_calls, 0) AS tool_calls,
        coalesce(calls.failed_calls, 0) AS failed_calls,
        coalesce(retries.retries, 0) AS retries,
        rollout.trace_count,
        rollout.span_count,
        rollout.error_count,
        rollout.open_count,
        coalesce(calls.model_sum_ns, 0) AS model_sum_ns,
        coalesce(calls.model_wall_ns, 0) AS model_wall_ns,
        coalesce(calls.tool_sum_ns, 0) AS tool_sum_ns,
        coalesce(calls.tool_wall_ns, 0) AS tool_wall_ns,
        calls.slowest_tool[2] AS slowest_tool,
        coalesce(capture.model_call_p50_ns, calls.model_call_p50_ns) AS model_call_p50_ns,
        coalesce(capture.model_call_max_ns, calls.model_call_max_ns) AS model_call_max_ns,
        capture.time_to_first_token_p50_ns,
        coalesce(capture.captured_calls, 0) AS captured_calls,
        CASE WHEN capture.captured_calls > 0 THEN capture.input_tokens ELSE usage.input_tokens END
            AS input_tokens,
        CASE
            WHEN capture.captured_calls > 0 THEN capture.cached_input_tokens
            ELSE usage.cached_input_tokens
        END AS cached_input_tokens,
        CASE WHEN capture.captured_calls > 0 THEN capture.output_tokens ELSE usage.output_tokens END
            AS output_tokens,
        capture.reasoning_tokens
    FROM rollouts AS rollout
    LEFT JOIN spent
        ON spent.run_id IS NOT DISTINCT FROM rollout.run_id
        AND spent.rollout_id = rollout.rollout_id
    LEFT JOIN culprit ON culprit.node = spent.culprit
    LEFT JOIN calls
        ON calls.run_id IS NOT DISTINCT FROM rollout.run_id
        AND calls.rollout_id = rollout.rollout_id
    LEFT JOIN retries
        ON retries.run_id IS NOT DISTINCT FROM rollout.run_id
        AND retries.rollout_id = rollout.rollout_id
    LEFT JOIN capture
        ON capture.run_id IS NOT DISTINCT FROM rollout.run_id
        AND capture.rollout_id = rollout.rollout_id
    LEFT JOIN usage
        ON usage.run_id IS NOT DISTINCT FROM rollout.run_id
        AND usage.rollout_id = rollout.rollout_id
    LEFT JOIN server
        ON server.run_id IS NOT DISTINCT FROM rollout.run_id
        AND server.rollout_id = rollout.rollout_id
    LEFT JOIN broken
        ON broken.run_id IS NOT DISTINCT FROM rollout.run_id
        AND broken.rollout_id = rollout.rollout_id
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
            {
                what: 'model',
                excess_ns: share.model_ns - median.model_ns,
                note: _more_of(share.turns - median.turns, 'turn', 'turns')
            },
            {
                what: 'tool' || coalesce(' ' || share.slowest_tool, ''),
                excess_ns: share.tool_ns - median.tool_ns,
                note: _more_of(share.tool_calls - median.tool_calls, 'call', 'calls')
            },
            {
                what: 'verify',
                excess_ns: share.verify_ns - median.verify_ns,
                note: ''
            },
            {
                what: 'sandbox',
                excess_ns: share.sandbox_ns - median.sandbox_ns,
                note: ''
            },
            {
                what: 'own work',
                excess_ns: share.agent_ns - median.agent_ns,
                note: ''
            },
            {
                what: 'queue',
                excess_ns: share.queue_ns - median.queue_ns,
                note: ''
            },
            {
                what: 'client overhead',
                excess_ns: share.client_overhead_ns - median.client_overhead_ns,
                note: ''
            },
            {
                what: 'event loop lag',
                excess_ns: share.event_loop_lag_ns - median.event_loop_lag_ns,
                note: coalesce(' by ' || share.stalled_by, '')
            },
            {
                what: CASE
                    WHEN share.retries = 1 THEN '1 retry'
                    ELSE share.retries || ' retries'
                END,
                excess_ns: share.retry_ns - median.retry_ns,
                note: ''
            },
            {
                what: 'unaccounted',
                excess_ns: share.unaccounted_ns - median.unaccounted_ns,
                note: ''
            }
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
    share.stalled_by,
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
COMMENT ON COLUMN rollout_shares.model_ns IS 'Time, ns, in models: the work of model servers and of what they call, of spans of model calls, and model calls whose other half is not in the input.';
COMMENT ON COLUMN rollout_shares.tool_ns IS 'Time, ns, in tools: resources servers but for /verify, execute_tool spans, and whatever else an agent calls.';
COMMENT ON COLUMN rollout_shares.verify_ns IS 'Time, ns, in verifications: all below /verify or gym.verify, calls of a judge included.';
COMMENT ON COLUMN rollout_shares.sandbox_ns IS 'Time, ns, in gym.sandbox spans and servers of sandboxes, whoever uses them.';
COMMENT ON COLUMN rollout_shares.agent_ns IS 'Time, ns, of the rollout''s own work: in driver, environment and agent servers, while no model, tool or verification was under way.';
COMMENT ON COLUMN rollout_shares.queue_ns IS 'Time, ns, in calls that had not begun on the other side: waiting for a connection or a turn, and the way there. An estimate where clocks differ.';
COMMENT ON COLUMN rollout_shares.client_overhead_ns IS 'Time, ns, in calls from then on, outside of what the other side did: the way back, reading the answer.';
COMMENT ON COLUMN rollout_shares.event_loop_lag_ns IS 'Time, ns, in processes whose event loop was stalled by another span''s work; at least so much, since only stalls that were logged count.';
COMMENT ON COLUMN rollout_shares.retry_ns IS 'Time, ns, in tries that failed and were followed by another try of the same call, pauses included.';
COMMENT ON COLUMN rollout_shares.unaccounted_ns IS 'Time, ns, in none of the rollout''s spans, or in servers of which nothing tells what they do.';
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
COMMENT ON COLUMN rollout_shares.stalled_by IS 'Span, service and rollout whose work stalled an event loop that it waited for, the longest time; null without one.';
COMMENT ON COLUMN rollout_shares.model_call_p50_ns IS 'Median duration of its model calls, ns: as captured, else of the calls'' spans.';
COMMENT ON COLUMN rollout_shares.model_call_max_ns IS 'Duration of its longest model call, ns, from the same source.';
COMMENT ON COLUMN rollout_shares.time_to_first_token_p50_ns IS 'Median time to the first token, ns; null without captures.';
COMMENT ON COLUMN rollout_shares.captured_calls IS 'Captured model calls (model_calls).';
COMMENT ON COLUMN rollout_shares.input_tokens IS 'Tokens of all prompts: as captured, else gen_ai.usage.* of gym.model spans, else of other spans of model calls; null without any.';
COMMENT ON COLUMN rollout_shares.cached_input_tokens IS 'Those of them that came from a cache, from the same source.';
COMMENT ON COLUMN rollout_shares.output_tokens IS 'Tokens of all answers, from the same source.';
COMMENT ON COLUMN rollout_shares.reasoning_tokens IS 'Those of them that were reasoning; null without captures.';
COMMENT ON COLUMN rollout_shares.why IS 'What it spent more on than the median rollout of its run, up to three kinds, each by more than 5 % of that one''s duration; null when there is none.';

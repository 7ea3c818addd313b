-- One row is a rollout and what its wall time was spent on, without the words of rollout_shares.
CREATE VIEW _rollout_shares AS
WITH
share AS (
    SELECT
        run_id,
        rollout_id,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'model'), 0)::BIGINT AS model_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'tool'), 0)::BIGINT AS tool_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'verify'), 0)::BIGINT AS verify_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'sandbox'), 0)::BIGINT AS sandbox_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'agent'), 0)::BIGINT AS agent_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'queue'), 0)::BIGINT AS queue_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'client_overhead'), 0)::BIGINT AS client_overhead_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'event_loop_lag'), 0)::BIGINT AS event_loop_lag_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'retry'), 0)::BIGINT AS retry_ns,
        coalesce(sum(end_time - start_time) FILTER (spent_on = 'unaccounted'), 0)::BIGINT AS unaccounted_ns
    FROM _rollout_work
    GROUP BY run_id, rollout_id
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
            ] AS BIGINT[]
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
)
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
LEFT JOIN share
    ON share.run_id IS NOT DISTINCT FROM rollout.run_id
    AND share.rollout_id = rollout.rollout_id
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
    AND broken.rollout_id = rollout.rollout_id;

COMMENT ON VIEW _rollout_shares IS 'One row is a rollout and what its wall time was spent on, without the words of rollout_shares.';

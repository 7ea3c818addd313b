-- One row is a server of a fleet's start: from its spawn until it answers its supervisor.
--
-- Where the supervisor's lines are not in the input, from the begin to the end of its own.
CREATE VIEW startup_servers AS
WITH
spawned AS (
    SELECT *
    FROM _startup_spans
    WHERE part = 'spawned'
),
process AS (
    SELECT
        trace_id,
        part_span_id,
        instance,
        any_value(part) AS part,
        max(server_name) AS server_name,
        max(server_type) AS server_type,
        max(run_id) AS run_id,
        max(parent_span_id) FILTER (stage IS NULL) AS parent_span_id,
        coalesce(max(outcome) FILTER (stage IS NULL), 'unknown') AS outcome,
        max(message) FILTER (stage IS NULL) AS message,
        min(start_time_unix_nano) AS start_time,
        max(seen_until_unix_nano) AS last_time,
        arg_max((stage, seen_ns), (start_time_unix_nano, seen_until_unix_nano, span_id))
            FILTER (stage IS NOT NULL AND outcome <> 'ready') AS stage_in,
        arg_max((stage, seen_ns), (start_time_unix_nano, seen_until_unix_nano, span_id))
            FILTER (stage IS NOT NULL) AS last_stage,
        arg_max((stage, seen_ns), (seen_ns, span_id)) FILTER (stage IS NOT NULL) AS longest_stage
    FROM _startup_spans
    WHERE part IN ('server', 'worker')
    GROUP BY trace_id, part_span_id, instance
),
placed AS (
    SELECT
        process.trace_id,
        process.part_span_id,
        process.instance,
        coalesce(
            max(by_id.span_id),
            arg_max(by_name.span_id, (by_name.start_time_unix_nano, by_name.span_id))
        ) AS server_span_id
    FROM process
    LEFT JOIN spawned AS by_id
        ON by_id.trace_id = process.trace_id
        AND by_id.span_id = process.parent_span_id
    LEFT JOIN spawned AS by_name
        ON by_name.trace_id = process.trace_id
        AND by_name.server_name = process.server_name
    GROUP BY process.trace_id, process.part_span_id, process.instance
),
server_process AS (
    SELECT
        process.*,
        placed.server_span_id,
        coalesce(placed.server_span_id, process.server_name, process.part_span_id) AS server_key
    FROM process
    JOIN placed
        ON placed.trace_id = process.trace_id
        AND placed.part_span_id IS NOT DISTINCT FROM process.part_span_id
        AND placed.instance = process.instance
),
server AS (
    SELECT
        trace_id,
        span_id AS server_key,
        span_id,
        run_id,
        server_name,
        server_type,
        start_time_unix_nano,
        end_time_unix_nano,
        seen_until_unix_nano,
        outcome,
        message
    FROM spawned
    UNION ALL
    SELECT
        trace_id,
        server_key,
        NULL,
        max(run_id),
        max(server_name),
        max(server_type),
        min(start_time),
        CASE WHEN bool_and(outcome = 'ready') THEN max(last_time) END,
        max(last_time),
        coalesce(arg_max(outcome, (last_time, outcome)) FILTER (outcome <> 'ready'), 'ready'),
        arg_max(message, (last_time, message)) FILTER (outcome <> 'ready')
    FROM server_process
    WHERE server_span_id IS NULL
    GROUP BY trace_id, server_key
),
ranked AS (
    SELECT
        process.*,
        count(*) OVER (PARTITION BY process.trace_id, process.server_key) AS process_count,
        row_number() OVER (
            PARTITION BY process.trace_id, process.server_key
            ORDER BY
                -- A worker that replaced another one later on held nobody up.
                server.outcome = 'ready' AND process.start_time > server.end_time_unix_nano,
                server.outcome <> 'ready' AND process.outcome = 'ready',
                process.last_time DESC,
                process.part_span_id,
                process.instance
        ) AS rank
    FROM server_process AS process
    JOIN server USING (trace_id, server_key)
),
told AS (
    SELECT
        server.trace_id,
        server.span_id,
        server.run_id,
        server.server_name,
        server.server_type,
        server.start_time_unix_nano,
        CASE WHEN server.outcome = 'ready' THEN server.end_time_unix_nano END AS ready_unix_nano,
        server.seen_until_unix_nano,
        server.outcome,
        coalesce(process.process_count, 0) AS process_count,
        process.instance,
        CASE
            WHEN server.outcome = 'ready' THEN process.longest_stage
            ELSE coalesce(process.stage_in, process.last_stage)
        END AS stage,
        CASE
            WHEN process.last_stage IS NOT NULL
                THEN server.outcome = 'ready' OR process.stage_in IS NULL
        END AS is_stage_over,
        CASE
            WHEN server.outcome = 'ready' AND server.span_id IS NOT NULL
                AND process.outcome = 'ready'
                THEN server.end_time_unix_nano - process.last_time
        END AS noticed_after_ns,
        server.message,
        process.message AS own_message,
        start.outcome AS start_outcome
    FROM server
    LEFT JOIN ranked AS process
        ON process.trace_id = server.trace_id
        AND process.server_key = server.server_key
        AND process.rank = 1
    LEFT JOIN (
        SELECT
            trace_id,
            min(outcome) AS outcome
        FROM _startup_spans
        WHERE part = 'supervisor' AND stage IS NULL
        GROUP BY trace_id
    ) AS start ON start.trace_id = server.trace_id
),
compared AS (
    SELECT
        *,
        bool_and(outcome = 'ready') OVER (PARTITION BY trace_id) AS are_all_ready,
        bool_or(outcome IN ('failed', 'timeout')) OVER (PARTITION BY trace_id) AS has_one_failed,
        row_number() OVER (
            PARTITION BY trace_id
            ORDER BY ready_unix_nano DESC NULLS LAST, server_name, span_id
        ) AS place,
        ready_unix_nano - lag(ready_unix_nano) OVER (
            PARTITION BY trace_id
            ORDER BY ready_unix_nano NULLS LAST, server_name DESC, span_id DESC
        ) AS behind_ns
    FROM told
)
SELECT
    trace_id,
    span_id,
    run_id,
    server_name,
    server_type,
    start_time_unix_nano,
    ready_unix_nano,
    seen_until_unix_nano - start_time_unix_nano AS duration_ns,
    outcome,
    CASE
        WHEN are_all_ready AND coalesce(start_outcome, 'ready') = 'ready' THEN place = 1
        WHEN has_one_failed THEN outcome IN ('failed', 'timeout')
        ELSE outcome <> 'ready' AND start_outcome IS DISTINCT FROM 'failed'
    END AS has_held_up,
    behind_ns,
    instance,
    stage[1] AS stage,
    stage[2] AS stage_ns,
    is_stage_over,
    noticed_after_ns,
    process_count,
    message,
    own_message
FROM compared;

COMMENT ON VIEW startup_servers IS 'One row is a server of a fleet''s start: from its spawn until it answers its supervisor.';
COMMENT ON COLUMN startup_servers.trace_id IS 'The start: 32 lower-case hex digits.';
COMMENT ON COLUMN startup_servers.span_id IS 'Its supervisor''s span of it; null where that is not in the input: then all is as its own processes say.';
COMMENT ON COLUMN startup_servers.run_id IS 'nemo.run.id.';
COMMENT ON COLUMN startup_servers.server_name IS 'nemo.gym.server.name.';
COMMENT ON COLUMN startup_servers.server_type IS 'nemo.gym.server.type.';
COMMENT ON COLUMN startup_servers.start_time_unix_nano IS 'When it was spawned, ns since 1970.';
COMMENT ON COLUMN startup_servers.ready_unix_nano IS 'When it answered, ns since 1970; null when it never did.';
COMMENT ON COLUMN startup_servers.duration_ns IS 'From its spawn until it was ready, ns; else until its start ended, or as far as it was seen.';
COMMENT ON COLUMN startup_servers.outcome IS 'ready, timeout, failed or interrupted; open: it still starts; lost: it still did when the process that tells of it ended; unknown: its own processes wrote stages only.';
COMMENT ON COLUMN startup_servers.has_held_up IS 'The start waited for it: the last one to be ready; of a start that failed, those that failed or took too long, else, unless something else failed, those that were not ready.';
COMMENT ON COLUMN startup_servers.behind_ns IS 'So much later was it ready than the one before it, ns.';
COMMENT ON COLUMN startup_servers.instance IS 'That of its processes which was ready last, or was not ready: key of instances; null when none wrote of its start.';
COMMENT ON COLUMN startup_servers.stage IS 'When ready, the longest stage of that process; else the stage that it was in.';
COMMENT ON COLUMN startup_servers.stage_ns IS 'Duration of that stage, ns; as far as it was seen.';
COMMENT ON COLUMN startup_servers.is_stage_over IS 'That stage had ended: of a server that was not ready, what it did next is not in the input. Null without a stage.';
COMMENT ON COLUMN startup_servers.noticed_after_ns IS 'From when its own process was ready until its supervisor saw it answer, ns; below 0 where their clocks differ.';
COMMENT ON COLUMN startup_servers.process_count IS 'Its processes that wrote of their start: main process and workers.';
COMMENT ON COLUMN startup_servers.message IS 'Why it was not ready, as its supervisor says.';
COMMENT ON COLUMN startup_servers.own_message IS 'Why, as its process says.';

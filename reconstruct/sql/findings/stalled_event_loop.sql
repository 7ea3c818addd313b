-- One row is a function that event loops of a service were stuck in: for 2 s in all, or three times.
-- It is a note below 10 s in all, since a machine that is short of CPU has some too.
CREATE VIEW _finding_stalled_event_loop AS
WITH
stall AS (
    SELECT
        *,
        coalesce(function_name || ' at ' || file_path || ':' || line_number, 'a place unseen')
            AS spot
    FROM stalls
),
spot AS (
    SELECT
        run_id,
        service_name,
        coalesce(function_name, '') AS function_name,
        count(*) AS stalls,
        sum(duration_ns)::BIGINT AS total_ns,
        max(duration_ns) AS longest_ns,
        sum(cpu_ns)::BIGINT AS cpu_ns,
        max(held_up_rollouts) AS held_up,
        arg_max(stall, (duration_ns, -start_time_unix_nano, file, line)) AS longest
    FROM stall
    GROUP BY run_id, service_name, coalesce(function_name, '')
)
SELECT
    'stalled_event_loop' AS code,
    CASE WHEN total_ns >= 10000000000 THEN 'warning' ELSE 'note' END AS severity,
    run_id,
    longest.trace_id AS trace_id,
    longest.span_id AS span_id,
    longest.file AS file,
    longest.line AS line,
    coalesce(nullif(function_name, ''), 'a place unseen')
        || coalesce(' in ' || service_name, '') AS place,
    'the event loop of ' || coalesce(service_name, 'a process without service.name')
        || ' did not run for ' || _seconds(total_ns) || ' in ' || stalls
        || CASE WHEN stalls = 1 THEN ' stall' ELSE ' stalls' END || ', in ' || longest.spot
        || coalesce('; the longest within ' || longest.span_name, '')
        || coalesce(', rollout ' || longest.rollout_id, '') AS message,
    CASE
        WHEN cpu_ns IS NULL THEN 'all that the process served waited for it'
        WHEN cpu_ns < total_ns // 2
            THEN 'it waited there, and all that the process served along with it: await it, or use asyncio.to_thread'
        ELSE 'it computed there, and all that the process served waited: give it to another process, or cut it up'
    END || '; the relation stalls has the stacks' AS hint,
    json_object(
        'stalls', stalls,
        'total_ns', total_ns,
        'longest_ns', longest_ns,
        'cpu_ns', cpu_ns,
        'held_up_rollouts', held_up,
        'function_name', nullif(function_name, ''),
        'file_path', longest.file_path,
        'line_number', longest.line_number
    ) AS evidence
FROM spot
WHERE total_ns >= 2000000000 OR stalls >= 3;

COMMENT ON VIEW _finding_stalled_event_loop IS 'One row is a function that event loops of a service were stuck in: for 2 s in all, or three times.';

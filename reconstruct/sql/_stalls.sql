-- One row is a time in which an event loop of a process did not run, as far as log records say so.
--
-- A record speaks of the time up to it. The one written at the end of a stall comes late, by as much
-- as the watcher slept; where one was written meanwhile, that one says when the stall began. Loops
-- of a process that stall together are one row. `culprits` are the spans (their rowids) that the
-- loops were in: these were at work; `culprit` is that of the longest stall, and `place` where its
-- code was. `stack` is of the last record that has one.
CREATE VIEW _stalls AS
WITH
record AS MATERIALIZED (
    SELECT
        log.instance,
        log.time_unix_nano AS time,
        CASE
            WHEN log.attributes->>'code.function.name' IS NOT NULL THEN {
                'function_name': log.attributes->>'code.function.name',
                'file_path': log.attributes->>'code.file.path',
                'line_number': TRY_CAST(log.attributes->>'code.line.number' AS BIGINT)
            }
        END AS place,
        log.attributes->>'code.stacktrace' AS stack,
        TRY_CAST(log.attributes->>'gymlog.event_loop.cpu_ms' AS INTEGER) * 1000000::BIGINT
            AS cpu_ns,
        log.file,
        log.line,
        TRY_CAST(log.attributes->>'gymlog.event_loop.stall_ms' AS INTEGER) * 1000000::BIGINT
            AS stall_ns,
        coalesce(
            TRY_CAST(log.attributes->>'gymlog.event_loop.is_stalled' AS BOOLEAN),
            FALSE
        ) AS is_stalled,
        span.rowid AS culprit,
        span.trace_id || span.span_id AS culprit_ids
    FROM log_records AS log
    LEFT JOIN spans AS span USING (trace_id, span_id)
    WHERE contains(log.attributes::VARCHAR, '"gymlog.event_loop.stall_ms"')
        AND log.time_unix_nano IS NOT NULL
),
stall AS (
    SELECT
        instance,
        time - stall_ns AS start_time,
        time AS end_time,
        culprit,
        culprit_ids,
        place,
        stack,
        cpu_ns,
        file,
        line
    FROM record
    WHERE is_stalled
    UNION ALL
    SELECT
        over.instance,
        CASE
            WHEN meanwhile.time >= over.time - over.stall_ns
                THEN meanwhile.time - meanwhile.stall_ns
            ELSE over.time - over.stall_ns
        END AS start_time,
        CASE
            WHEN meanwhile.time >= over.time - over.stall_ns
                THEN least(meanwhile.time - meanwhile.stall_ns + over.stall_ns, over.time)
            ELSE over.time
        END,
        over.culprit,
        over.culprit_ids,
        over.place,
        over.stack,
        over.cpu_ns,
        over.file,
        over.line
    FROM record AS over
    ASOF LEFT JOIN (
        SELECT *
        FROM record
        WHERE is_stalled
    ) AS meanwhile
        ON meanwhile.instance = over.instance
        AND meanwhile.time <= over.time
    WHERE NOT over.is_stalled
),
grouped AS (
    SELECT
        *,
        count(*) FILTER (is_first) OVER (
            PARTITION BY instance
            ORDER BY start_time, end_time, culprit
        ) AS number
    FROM (
        SELECT
            *,
            coalesce(
                start_time > max(end_time) OVER (
                    PARTITION BY instance
                    ORDER BY start_time, end_time, culprit
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ),
                TRUE
            ) AS is_first
        FROM stall
        WHERE end_time > start_time
    )
)
SELECT
    instance,
    number,
    min(start_time) AS start_time_unix_nano,
    max(end_time) AS end_time_unix_nano,
    list(DISTINCT culprit) FILTER (culprit IS NOT NULL) AS culprits,
    arg_max(culprit, (end_time - start_time, culprit_ids)) FILTER (culprit IS NOT NULL) AS culprit,
    arg_max(place, (end_time - start_time, culprit_ids, file, line))
        FILTER (place IS NOT NULL) AS place,
    arg_max(stack, (end_time, file, line)) FILTER (stack IS NOT NULL) AS stack,
    max(cpu_ns) AS cpu_ns,
    arg_max((file, line), (end_time - start_time, culprit_ids, file, line)) AS record
FROM grouped
GROUP BY instance, number;

COMMENT ON VIEW _stalls IS 'One row is a time in which an event loop of a process did not run, as far as log records say so.';

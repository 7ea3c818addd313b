-- One row is a time in which an event loop of a process did not run, as far as log records say so,
-- and what it was in.
CREATE VIEW stalls AS
WITH
stall AS MATERIALIZED (
    FROM _stalls
),
held_up AS (
    SELECT
        stall.instance,
        stall.number,
        count(DISTINCT (span.run_id, span.rollout_id)) AS rollouts
    FROM spans AS span
    JOIN stall
        ON stall.instance = span.instance
        AND span.start_time_unix_nano < stall.end_time_unix_nano
        AND coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns)
            > stall.start_time_unix_nano
    WHERE span.rollout_id IS NOT NULL
        AND NOT coalesce(list_contains(stall.culprits, span.rowid), FALSE)
    GROUP BY stall.instance, stall.number
)
SELECT
    owner.run_id,
    owner.service_name,
    owner.service_instance_id,
    owner.host_name,
    owner.process_pid,
    stall.start_time_unix_nano,
    stall.end_time_unix_nano,
    stall.end_time_unix_nano - stall.start_time_unix_nano AS duration_ns,
    stall.cpu_ns,
    stall.place.function_name AS function_name,
    stall.place.file_path AS file_path,
    stall.place.line_number AS line_number,
    stall.stack,
    span.trace_id,
    span.span_id,
    span.name AS span_name,
    span.rollout_id,
    coalesce(held_up.rollouts, 0) AS held_up_rollouts,
    stall.record[1] AS file,
    stall.record[2] AS line
FROM stall
JOIN instances AS owner USING (instance)
LEFT JOIN spans AS span ON span.rowid = stall.culprit
LEFT JOIN held_up
    ON held_up.instance = stall.instance
    AND held_up.number = stall.number;

COMMENT ON VIEW stalls IS 'One row is a time in which an event loop of a process did not run, as far as log records say so, and what it was in.';
COMMENT ON COLUMN stalls.run_id IS 'nemo.run.id, where there is one.';
COMMENT ON COLUMN stalls.service_name IS 'service.name of the process.';
COMMENT ON COLUMN stalls.service_instance_id IS 'service.instance.id of the process.';
COMMENT ON COLUMN stalls.host_name IS 'host.name of the process.';
COMMENT ON COLUMN stalls.process_pid IS 'process.pid of the process.';
COMMENT ON COLUMN stalls.start_time_unix_nano IS 'Since when it did not run, ns since 1970.';
COMMENT ON COLUMN stalls.end_time_unix_nano IS 'Until when, ns since 1970; of a stall without an end as far as a record says.';
COMMENT ON COLUMN stalls.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN stalls.cpu_ns IS 'CPU time of the loop''s thread meanwhile, ns: near 0 when it was waiting; null while it lasts.';
COMMENT ON COLUMN stalls.function_name IS 'Function that the loop was in; null when no thread could see it.';
COMMENT ON COLUMN stalls.file_path IS 'Source file of that function.';
COMMENT ON COLUMN stalls.line_number IS 'Line it was at.';
COMMENT ON COLUMN stalls.stack IS 'The frames from the loop inwards, a line each.';
COMMENT ON COLUMN stalls.trace_id IS 'Trace of the span that the loop was in; null when it was in none.';
COMMENT ON COLUMN stalls.span_id IS 'That span.';
COMMENT ON COLUMN stalls.span_name IS 'Its name.';
COMMENT ON COLUMN stalls.rollout_id IS 'Its rollout.';
COMMENT ON COLUMN stalls.held_up_rollouts IS 'Rollouts of which other spans of the process were running meanwhile.';
COMMENT ON COLUMN stalls.file IS 'File of the log record.';
COMMENT ON COLUMN stalls.line IS 'Its physical line.';

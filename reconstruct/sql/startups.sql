-- One row is a start of a fleet: all that its supervisor and servers tell of it, in one trace.
CREATE VIEW startups AS
WITH
supervisor AS (
    SELECT
        trace_id,
        arg_min(span_id, (start_time_unix_nano, span_id)) FILTER (stage IS NULL) AS span_id,
        max(service_name) AS service_name,
        min(outcome) FILTER (stage IS NULL) AS outcome,
        max(message) FILTER (stage IS NULL) AS message,
        arg_max(stage, (start_time_unix_nano, seen_until_unix_nano, span_id))
            FILTER (stage IS NOT NULL AND outcome <> 'ready') AS stage
    FROM _startup_spans
    WHERE part = 'supervisor'
    GROUP BY trace_id
),
server AS (
    SELECT
        trace_id,
        count(*) AS server_count,
        count(*) FILTER (outcome = 'ready') AS ready_count,
        list(server_name ORDER BY server_name, span_id) FILTER (has_held_up) AS held_up_by
    FROM startup_servers
    GROUP BY trace_id
),
start AS (
    SELECT
        trace_id,
        max(run_id) AS run_id,
        min(start_time_unix_nano) AS start_time,
        min(start_time_unix_nano) FILTER (part = 'supervisor' AND stage IS NULL) AS own_start,
        max(end_time_unix_nano) FILTER (part = 'supervisor' AND stage IS NULL) AS own_end,
        max(seen_until_unix_nano) AS last_time,
        max(seen_until_unix_nano) FILTER (part = 'supervisor' AND stage IS NULL) AS own_last_time
    FROM _startup_spans
    GROUP BY trace_id
)
SELECT
    start.trace_id,
    supervisor.span_id,
    start.run_id,
    supervisor.service_name,
    coalesce(start.own_start, start.start_time) AS start_time_unix_nano,
    start.own_end AS end_time_unix_nano,
    coalesce(start.own_last_time - start.own_start, start.last_time - start.start_time)
        AS duration_ns,
    coalesce(supervisor.outcome, 'unknown') AS outcome,
    supervisor.stage,
    coalesce(server.server_count, 0) AS server_count,
    coalesce(server.ready_count, 0) AS ready_count,
    coalesce(server.held_up_by, []) AS held_up_by,
    supervisor.message
FROM start
LEFT JOIN supervisor USING (trace_id)
LEFT JOIN server USING (trace_id);

COMMENT ON VIEW startups IS 'One row is a start of a fleet: all that its supervisor and servers tell of it, in one trace.';
COMMENT ON COLUMN startups.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN startups.span_id IS 'The span gym.startup; null where it is not in the input: then times are as the servers say.';
COMMENT ON COLUMN startups.run_id IS 'nemo.run.id.';
COMMENT ON COLUMN startups.service_name IS 'service.name of the supervisor.';
COMMENT ON COLUMN startups.start_time_unix_nano IS 'Start, ns since 1970.';
COMMENT ON COLUMN startups.end_time_unix_nano IS 'End, ns since 1970; null without one.';
COMMENT ON COLUMN startups.duration_ns IS 'End less start, ns; without an end as far as it was seen.';
COMMENT ON COLUMN startups.outcome IS 'ready, timeout, failed or interrupted; open: it goes on; lost: it did when the supervisor ended; unknown: the supervisor''s span is not in the input. Without nemo.gym.startup.outcome the span''s end and status say it.';
COMMENT ON COLUMN startups.stage IS 'The supervisor''s stage in which the start ended badly, or is; null of one that was ready.';
COMMENT ON COLUMN startups.server_count IS 'Servers that were spawned.';
COMMENT ON COLUMN startups.ready_count IS 'Those of them that were ready.';
COMMENT ON COLUMN startups.held_up_by IS 'Names of the servers that it waited for: startup_servers.has_held_up.';
COMMENT ON COLUMN startups.message IS 'Why it was not ready.';

-- One row is a span of a fleet's start: a part of it, or a stage of such a part.
--
-- A part is the supervisor's own, a server as its supervisor sees it (spawned), and what the process
-- of a server or of a worker says of itself. A stage hangs below its part, whose own line may never
-- have been written.
CREATE VIEW _startup_spans AS
WITH
startup_span AS (
    SELECT
        *,
        CASE
            WHEN name NOT IN (
                'gym.startup',
                'gym.startup.server',
                'gym.server.startup',
                'gym.server.startup.worker'
            ) OR (attributes->>'nemo.gym.startup.stage') IS NOT NULL
                THEN coalesce(
                    attributes->>'nemo.gym.startup.stage',
                    regexp_replace(name, '^gym\.(startup|server\.startup(\.worker)?)\.', '')
                )
        END AS stage
    FROM spans
    WHERE name IN ('gym.startup', 'gym.server.startup')
        OR starts_with(name, 'gym.startup.')
        OR starts_with(name, 'gym.server.startup.')
)
SELECT
    trace_id,
    span_id,
    CASE WHEN stage IS NULL THEN span_id ELSE parent_span_id END AS part_span_id,
    parent_span_id,
    CASE
        WHEN name = 'gym.startup.server' AND stage IS NULL THEN 'spawned'
        WHEN starts_with(name, 'gym.startup') THEN 'supervisor'
        WHEN name = 'gym.server.startup.worker' THEN 'worker'
        WHEN starts_with(name, 'gym.server.startup.worker.') THEN 'worker'
        ELSE 'server'
    END AS part,
    stage,
    coalesce(attributes->>'nemo.gym.server.name', server_name) AS server_name,
    coalesce(attributes->>'nemo.gym.server.type', server_type) AS server_type,
    coalesce(
        attributes->>'nemo.gym.startup.outcome',
        CASE
            WHEN state <> 'finished' THEN state
            WHEN status_code = 'ERROR' THEN 'failed'
            ELSE 'ready'
        END
    ) AS outcome,
    status_message AS message,
    run_id,
    service_name,
    instance,
    process_pid,
    start_time_unix_nano,
    end_time_unix_nano,
    coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS seen_until_unix_nano,
    duration_ns,
    coalesce(duration_ns, open_ns) AS seen_ns
FROM startup_span;

COMMENT ON VIEW _startup_spans IS 'One row is a span of a fleet''s start: a part of it, or a stage of such a part.';

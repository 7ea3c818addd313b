-- One row is a stage of a fleet's start, in one process: of its supervisor, a server or a worker.
CREATE VIEW startup_stages AS
SELECT
    trace_id,
    span_id,
    run_id,
    part,
    CASE WHEN part <> 'supervisor' THEN server_name END AS server_name,
    instance,
    process_pid,
    stage,
    row_number() OVER process_stages AS position,
    start_time_unix_nano,
    end_time_unix_nano,
    seen_ns AS duration_ns,
    seen_ns / nullif(sum(seen_ns) OVER (PARTITION BY trace_id, part_span_id, instance), 0)::DOUBLE
        AS share,
    outcome <> 'ready' AS is_unfinished,
    message
FROM _startup_spans
WHERE stage IS NOT NULL
WINDOW process_stages AS (
    PARTITION BY trace_id, part_span_id, instance
    ORDER BY start_time_unix_nano, seen_until_unix_nano, span_id
);

COMMENT ON VIEW startup_stages IS 'One row is a stage of a fleet''s start, in one process: of its supervisor, a server or a worker. Stages follow each other without a gap.';
COMMENT ON COLUMN startup_stages.trace_id IS 'The start: 32 lower-case hex digits.';
COMMENT ON COLUMN startup_stages.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN startup_stages.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN startup_stages.part IS 'supervisor, server (main process of a server) or worker.';
COMMENT ON COLUMN startup_stages.server_name IS 'nemo.gym.server.name; null for the supervisor.';
COMMENT ON COLUMN startup_stages.instance IS 'Its process: key of instances.';
COMMENT ON COLUMN startup_stages.process_pid IS 'process.pid of its process.';
COMMENT ON COLUMN startup_stages.stage IS 'nemo.gym.startup.stage.';
COMMENT ON COLUMN startup_stages.position IS 'Its place among the stages of its process, from 1.';
COMMENT ON COLUMN startup_stages.start_time_unix_nano IS 'Start, ns since 1970.';
COMMENT ON COLUMN startup_stages.end_time_unix_nano IS 'End, ns since 1970; null while it goes on or when its process died.';
COMMENT ON COLUMN startup_stages.duration_ns IS 'End less start, ns; of a stage without an end as far as it was seen.';
COMMENT ON COLUMN startup_stages.share IS 'Its part, 0 to 1, of the stages of its process.';
COMMENT ON COLUMN startup_stages.is_unfinished IS 'The start of its process failed or ended in it, or is still in it.';
COMMENT ON COLUMN startup_stages.message IS 'Why, where it ended badly.';

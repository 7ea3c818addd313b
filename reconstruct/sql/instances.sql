-- One row is a service instance: a process that wrote lines.
--
-- What its process records say comes first, in whichever of them it stands; a slice of a file
-- without one still has what the lines themselves carry.
CREATE TABLE instances AS
WITH
sign_of_life AS (
    SELECT
        owner,
        min(start_time_unix_nano) AS first_time,
        max(greatest(start_time_unix_nano, end_time_unix_nano)) AS last_time,
        NULL::VARCHAR AS state,
        NULL::BIGINT AS spans_written,
        NULL::BIGINT AS records_dropped
    FROM _span_lines
    GROUP BY owner
    UNION ALL
    SELECT
        owner,
        min(time_unix_nano),
        max(time_unix_nano),
        NULL,
        NULL,
        NULL
    FROM _log_lines
    GROUP BY owner
    UNION ALL
    SELECT
        owner,
        min(time_unix_nano),
        max(time_unix_nano),
        NULL,
        NULL,
        NULL
    FROM _metric_lines
    GROUP BY owner
    UNION ALL
    SELECT
        owner,
        time_unix_nano,
        time_unix_nano,
        state,
        spans_written,
        records_dropped
    FROM _process_lines
),
instance_life AS (
    SELECT
        owner.instance,
        max(owner.service_name) AS service_name,
        max(owner.service_instance_id) AS service_instance_id,
        max(owner.server_name) AS server_name,
        max(owner.server_type) AS server_type,
        max(owner.run_id) AS run_id,
        max(owner.host_name) AS host_name,
        max(owner.process_pid) AS process_pid,
        max(owner.boot_id) AS boot_id,
        max(owner.resource::VARCHAR) FILTER (life.state IS NOT NULL)::JSON AS resource,
        min(life.first_time) AS first_time_unix_nano,
        max(life.last_time) AS last_time_unix_nano,
        count(life.state) AS process_records,
        arg_max(life.state, (life.last_time, life.state)) FILTER (life.state IS NOT NULL) = 'stopped'
            AS has_stopped,
        max(life.spans_written) AS spans_written,
        max(life.records_dropped) AS records_dropped
    FROM sign_of_life AS life
    JOIN _owners AS owner USING (owner)
    GROUP BY owner.instance
),
run_end AS (
    SELECT
        run_id,
        max(last_time_unix_nano) AS last_time,
        arg_max(
            coalesce(has_stopped, FALSE),
            (last_time_unix_nano, coalesce(has_stopped, FALSE))
        ) AS is_over
    FROM instance_life
    GROUP BY run_id
)
SELECT
    life.instance,
    life.service_name,
    life.service_instance_id,
    life.server_name,
    life.server_type,
    life.run_id,
    life.host_name,
    life.process_pid,
    life.boot_id,
    life.resource,
    life.first_time_unix_nano,
    life.last_time_unix_nano,
    run.last_time AS run_last_time_unix_nano,
    CASE
        WHEN life.has_stopped THEN 'stopped'
        WHEN life.process_records = 0 THEN 'unknown'
        WHEN run.is_over THEN 'dead'
        WHEN run.last_time - life.last_time_unix_nano > 60000000000 THEN 'dead'
        ELSE 'alive'
    END AS state,
    life.process_records,
    life.spans_written,
    life.records_dropped
FROM instance_life AS life
JOIN run_end AS run ON run.run_id IS NOT DISTINCT FROM life.run_id;

COMMENT ON TABLE instances IS 'One row is a service instance: a process that wrote lines.';
COMMENT ON COLUMN instances.instance IS 'Key: service.name # service.instance.id, with # pid where several processes share an instance id.';
COMMENT ON COLUMN instances.service_name IS 'service.name of the resource.';
COMMENT ON COLUMN instances.service_instance_id IS 'service.instance.id of the resource.';
COMMENT ON COLUMN instances.server_name IS 'nemo.gym.server.name of the resource, else the name before the line.';
COMMENT ON COLUMN instances.server_type IS 'nemo.gym.server.type of the resource.';
COMMENT ON COLUMN instances.run_id IS 'nemo.run.id of the resource.';
COMMENT ON COLUMN instances.host_name IS 'host.name of the resource.';
COMMENT ON COLUMN instances.process_pid IS 'process.pid of the resource.';
COMMENT ON COLUMN instances.boot_id IS 'gymlog.boot.id of the resource: instances with equal ids share a clock.';
COMMENT ON COLUMN instances.resource IS 'The whole resource of its process records; null without one.';
COMMENT ON COLUMN instances.first_time_unix_nano IS 'Earliest time on any of its lines, ns since 1970.';
COMMENT ON COLUMN instances.last_time_unix_nano IS 'Last sign of life: latest time on any of its lines, ns since 1970.';
COMMENT ON COLUMN instances.run_last_time_unix_nano IS 'Latest time on any line of its run, ns since 1970.';
COMMENT ON COLUMN instances.state IS 'stopped: its last process record says so. dead: it did not, and its run is over (the last line of the run is of an instance that stopped) or it was silent for the last 60 s, two process intervals, of the run. alive: neither. unknown: it wrote no process records, so silence means nothing.';
COMMENT ON COLUMN instances.process_records IS 'Process records read.';
COMMENT ON COLUMN instances.spans_written IS 'Spans that it counted itself, by its last process record.';
COMMENT ON COLUMN instances.records_dropped IS 'Records that it could not write, by its last process record.';

-- One row is a log record.
CREATE VIEW log_records AS
SELECT
    line.time_unix_nano,
    line.severity_number,
    line.severity_text,
    line.body,
    line.attributes,
    line.trace_id,
    line.span_id,
    line.flags,
    coalesce(line.dropped_attributes_count, 0) AS dropped_attributes_count,
    line.rollout_id,
    line.scope_name,
    line.scope_version,
    owner.service_name,
    owner.service_instance_id,
    owner.server_name,
    owner.server_type,
    owner.run_id,
    owner.host_name,
    owner.process_pid,
    owner.resource,
    owner.instance,
    line.seq,
    line.file,
    line.line
FROM _log_lines AS line
JOIN _owner_instances AS owner USING (owner)
WHERE line.rowid NOT IN (
    SELECT row_id
    FROM _duplicate_lines
    WHERE class = 'log'
);

COMMENT ON VIEW log_records IS 'One row is a log record.';
COMMENT ON COLUMN log_records.time_unix_nano IS 'When it was logged, ns since 1970.';
COMMENT ON COLUMN log_records.severity_number IS '1 to 24, OpenTelemetry''s scale.';
COMMENT ON COLUMN log_records.severity_text IS 'The source''s own level name.';
COMMENT ON COLUMN log_records.body IS 'JSON: text or an object.';
COMMENT ON COLUMN log_records.attributes IS 'Facts of the log record, a JSON object.';
COMMENT ON COLUMN log_records.trace_id IS '32 lower-case hex digits; null outside a span.';
COMMENT ON COLUMN log_records.span_id IS '16 lower-case hex digits; null outside a span.';
COMMENT ON COLUMN log_records.flags IS 'W3C trace flags; null outside a span.';
COMMENT ON COLUMN log_records.dropped_attributes_count IS 'Attributes that a limit cut away.';
COMMENT ON COLUMN log_records.rollout_id IS 'nemo.gym.rollout.id in its attributes.';
COMMENT ON COLUMN log_records.scope_name IS 'Instrumenting library or logger.';
COMMENT ON COLUMN log_records.scope_version IS 'Its version.';
COMMENT ON COLUMN log_records.service_name IS 'service.name of its process.';
COMMENT ON COLUMN log_records.service_instance_id IS 'service.instance.id of its process.';
COMMENT ON COLUMN log_records.server_name IS 'nemo.gym.server.name of its process.';
COMMENT ON COLUMN log_records.server_type IS 'nemo.gym.server.type of its process.';
COMMENT ON COLUMN log_records.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN log_records.host_name IS 'host.name of its process.';
COMMENT ON COLUMN log_records.process_pid IS 'process.pid of its process.';
COMMENT ON COLUMN log_records.resource IS 'JSON object with attributes: the whole resource where a process record gave it.';
COMMENT ON COLUMN log_records.instance IS 'Its process: key of instances.';
COMMENT ON COLUMN log_records.seq IS 'Number of the line in its process, from 0; null when the format has none.';
COMMENT ON COLUMN log_records.file IS 'File the record lies in.';
COMMENT ON COLUMN log_records.line IS 'Physical line in that file, from 1.';

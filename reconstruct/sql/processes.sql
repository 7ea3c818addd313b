-- One row is a process record: what a service instance said of itself at one time.
CREATE VIEW processes AS
SELECT
    line.time_unix_nano,
    line.state,
    line.schema,
    line.spans_written,
    line.records_dropped,
    line.open_spans,
    line.export_dropped,
    line.export_failed,
    owner.service_name,
    owner.service_instance_id,
    owner.server_name,
    owner.server_type,
    owner.run_id,
    owner.host_name,
    owner.process_pid,
    stated.resource,
    owner.instance,
    line.seq,
    line.file,
    line.line
FROM _process_lines AS line
JOIN _owners AS stated USING (owner)
JOIN _owner_instances AS owner USING (owner)
WHERE line.rowid NOT IN (
    SELECT row_id
    FROM _duplicate_lines
    WHERE class = 'process'
);

COMMENT ON VIEW processes IS 'One row is a process record: what a service instance said of itself at one time.';
COMMENT ON COLUMN processes.time_unix_nano IS 'When it was written, ns since 1970.';
COMMENT ON COLUMN processes.state IS 'started, alive or stopped.';
COMMENT ON COLUMN processes.schema IS 'Version of the line contract.';
COMMENT ON COLUMN processes.spans_written IS 'Span records written so far.';
COMMENT ON COLUMN processes.records_dropped IS 'Records that could not be written so far.';
COMMENT ON COLUMN processes.open_spans IS 'Spans open at that time.';
COMMENT ON COLUMN processes.export_dropped IS 'Records that had no room, or at the end no time, on their way to OTLP so far; null is none.';
COMMENT ON COLUMN processes.export_failed IS 'Records and points that no OTLP receiver took so far; null is none.';
COMMENT ON COLUMN processes.service_name IS 'service.name of its process.';
COMMENT ON COLUMN processes.service_instance_id IS 'service.instance.id of its process.';
COMMENT ON COLUMN processes.server_name IS 'nemo.gym.server.name of its process.';
COMMENT ON COLUMN processes.server_type IS 'nemo.gym.server.type of its process.';
COMMENT ON COLUMN processes.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN processes.host_name IS 'host.name of its process.';
COMMENT ON COLUMN processes.process_pid IS 'process.pid of its process.';
COMMENT ON COLUMN processes.resource IS 'JSON object with attributes: the whole resource.';
COMMENT ON COLUMN processes.instance IS 'Its process: key of instances.';
COMMENT ON COLUMN processes.seq IS 'Number of the line in its process, from 0; null when the format has none.';
COMMENT ON COLUMN processes.file IS 'File the record lies in.';
COMMENT ON COLUMN processes.line IS 'Physical line in that file, from 1.';

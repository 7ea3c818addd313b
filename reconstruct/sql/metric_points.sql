-- One row is a point of a metric series.
CREATE VIEW metric_points AS
SELECT
    line.name,
    line.description,
    line.unit,
    line.type,
    line.is_monotonic,
    line.aggregation_temporality,
    line.start_time_unix_nano,
    line.time_unix_nano,
    line.attributes,
    line.value,
    line.count,
    line.sum,
    line.min,
    line.max,
    line.bucket_counts,
    line.explicit_bounds,
    line.exemplars,
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
FROM _metric_lines AS line
JOIN _owner_instances AS owner USING (owner)
WHERE line.rowid NOT IN (
    SELECT row_id
    FROM _duplicate_lines
    WHERE class = 'metric'
);

COMMENT ON VIEW metric_points IS 'One row is a point of a metric series.';
COMMENT ON COLUMN metric_points.name IS 'The instrument''s name.';
COMMENT ON COLUMN metric_points.description IS 'What it measures; only in the first line of a series per process.';
COMMENT ON COLUMN metric_points.unit IS 'UCUM unit of value, sum, min, max and explicit_bounds.';
COMMENT ON COLUMN metric_points.type IS 'sum, gauge, histogram or exponential_histogram.';
COMMENT ON COLUMN metric_points.is_monotonic IS 'A sum that only grows.';
COMMENT ON COLUMN metric_points.aggregation_temporality IS 'DELTA or CUMULATIVE.';
COMMENT ON COLUMN metric_points.start_time_unix_nano IS 'Start of the interval, ns since 1970.';
COMMENT ON COLUMN metric_points.time_unix_nano IS 'End of the interval, ns since 1970.';
COMMENT ON COLUMN metric_points.attributes IS 'The series, a JSON object.';
COMMENT ON COLUMN metric_points.value IS 'Of a sum or gauge, in unit.';
COMMENT ON COLUMN metric_points.count IS 'Values in a histogram.';
COMMENT ON COLUMN metric_points.sum IS 'Sum of the values in a histogram, in unit.';
COMMENT ON COLUMN metric_points.min IS 'Least value in a histogram, in unit.';
COMMENT ON COLUMN metric_points.max IS 'Greatest value in a histogram, in unit.';
COMMENT ON COLUMN metric_points.bucket_counts IS 'JSON list, one more than explicit_bounds.';
COMMENT ON COLUMN metric_points.explicit_bounds IS 'JSON list of upper bounds, in unit.';
COMMENT ON COLUMN metric_points.exemplars IS 'JSON list of value, time_unix_nano (ns since 1970), trace_id, span_id.';
COMMENT ON COLUMN metric_points.scope_name IS 'Instrumenting library or logger.';
COMMENT ON COLUMN metric_points.scope_version IS 'Its version.';
COMMENT ON COLUMN metric_points.service_name IS 'service.name of its process.';
COMMENT ON COLUMN metric_points.service_instance_id IS 'service.instance.id of its process.';
COMMENT ON COLUMN metric_points.server_name IS 'nemo.gym.server.name of its process.';
COMMENT ON COLUMN metric_points.server_type IS 'nemo.gym.server.type of its process.';
COMMENT ON COLUMN metric_points.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN metric_points.host_name IS 'host.name of its process.';
COMMENT ON COLUMN metric_points.process_pid IS 'process.pid of its process.';
COMMENT ON COLUMN metric_points.resource IS 'JSON object with attributes: the whole resource where a process record gave it.';
COMMENT ON COLUMN metric_points.instance IS 'Its process: key of instances.';
COMMENT ON COLUMN metric_points.seq IS 'Number of the line in its process, from 0; null when the format has none.';
COMMENT ON COLUMN metric_points.file IS 'File the record lies in.';
COMMENT ON COLUMN metric_points.line IS 'Physical line in that file, from 1.';

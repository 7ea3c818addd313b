-- One row is a trace: all spans of one trace id.
CREATE TABLE traces AS
SELECT
    trace_id,
    arg_min(span_id, (start_time_unix_nano, span_id)) FILTER (parent_span_id IS NULL)
        AS root_span_id,
    arg_min(name, (start_time_unix_nano, span_id)) FILTER (parent_span_id IS NULL) AS root_name,
    count(*) FILTER (parent_span_id IS NULL) AS root_count,
    count(DISTINCT service_name) AS service_count,
    count(*) AS span_count,
    count(*) FILTER (status_code = 'ERROR') AS error_count,
    count(*) FILTER (state <> 'finished') AS open_count,
    min(start_time_unix_nano) AS start_time_unix_nano,
    max(coalesce(end_time_unix_nano, start_time_unix_nano + open_ns)) AS end_time_unix_nano,
    max(coalesce(end_time_unix_nano, start_time_unix_nano + open_ns))
        - min(start_time_unix_nano) AS duration_ns,
    CASE WHEN count(DISTINCT run_id) = 1 THEN min(run_id) END AS run_id,
    CASE WHEN count(DISTINCT rollout_id) = 1 THEN min(rollout_id) END AS rollout_id,
    count(DISTINCT rollout_id) AS rollout_count
FROM spans
GROUP BY trace_id;

COMMENT ON TABLE traces IS 'One row is a trace: all spans of one trace id.';
COMMENT ON COLUMN traces.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN traces.root_span_id IS 'The span without a parent, the earliest of several; null when the input has none.';
COMMENT ON COLUMN traces.root_name IS 'Name of that span.';
COMMENT ON COLUMN traces.root_count IS 'Spans without a parent.';
COMMENT ON COLUMN traces.service_count IS 'Distinct service names.';
COMMENT ON COLUMN traces.span_count IS 'Spans, unfinished ones too.';
COMMENT ON COLUMN traces.error_count IS 'Spans with status ERROR.';
COMMENT ON COLUMN traces.open_count IS 'Unfinished spans, open or lost.';
COMMENT ON COLUMN traces.start_time_unix_nano IS 'Earliest start, ns since 1970.';
COMMENT ON COLUMN traces.end_time_unix_nano IS 'Latest end, ns since 1970; an unfinished span counts as far as it was seen.';
COMMENT ON COLUMN traces.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN traces.run_id IS 'nemo.run.id; null when none or several.';
COMMENT ON COLUMN traces.rollout_id IS 'nemo.gym.rollout.id; null when none or several.';
COMMENT ON COLUMN traces.rollout_count IS 'Distinct rollout ids.';

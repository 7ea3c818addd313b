-- One row is a trace: all spans of one trace id.
--
-- To count distinct values costs most: services are told by a hash, rollouts counted only where the
-- least is not the greatest.
CREATE TABLE traces AS
WITH
trace AS (
    SELECT
        trace_id,
        min((start_time_unix_nano, span_id, name)) FILTER (parent_span_id IS NULL) AS first_root,
        count(*) FILTER (parent_span_id IS NULL) AS root_count,
        list_distinct(list(hash(service_name)) FILTER (service_name IS NOT NULL)) AS services,
        count(*) AS span_count,
        count(*) FILTER (status_code = 'ERROR') AS error_count,
        count(*) FILTER (state <> 'finished') AS open_count,
        min(start_time_unix_nano) AS first_time,
        max(coalesce(end_time_unix_nano, start_time_unix_nano + open_ns)) AS last_time,
        min(run_id) AS least_run,
        max(run_id) AS greatest_run,
        min(rollout_id) AS least_rollout,
        max(rollout_id) AS greatest_rollout
    FROM spans
    GROUP BY trace_id
),
several_rollouts AS (
    SELECT
        trace_id,
        count(DISTINCT rollout_id) AS rollout_count
    FROM spans
    SEMI JOIN (
        SELECT trace_id
        FROM trace
        WHERE least_rollout <> greatest_rollout
    ) AS several USING (trace_id)
    GROUP BY trace_id
)
SELECT
    trace.trace_id,
    trace.first_root[2] AS root_span_id,
    trace.first_root[3] AS root_name,
    trace.root_count,
    coalesce(len(trace.services), 0) AS service_count,
    trace.span_count,
    trace.error_count,
    trace.open_count,
    trace.first_time AS start_time_unix_nano,
    trace.last_time AS end_time_unix_nano,
    trace.last_time - trace.first_time AS duration_ns,
    CASE WHEN trace.least_run = trace.greatest_run THEN trace.least_run END AS run_id,
    CASE WHEN trace.least_rollout = trace.greatest_rollout THEN trace.least_rollout END
        AS rollout_id,
    coalesce(several.rollout_count, (trace.least_rollout IS NOT NULL)::BIGINT) AS rollout_count
FROM trace
LEFT JOIN several_rollouts AS several USING (trace_id);

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

-- One row is a rollout of a run in one trace, in order of the rollouts, so that a rollout is found
-- without its spans.
CREATE TABLE _rollout_traces AS
SELECT
    run_id,
    rollout_id,
    trace_id,
    count(*) AS span_count,
    count(*) FILTER (status_code = 'ERROR') AS error_count,
    count(*) FILTER (state <> 'finished') AS open_count,
    min(start_time_unix_nano) AS start_time_unix_nano,
    max(seen_until_unix_nano) AS end_time_unix_nano
FROM _rollout_spans
GROUP BY run_id, rollout_id, trace_id
ORDER BY rollout_id;

COMMENT ON TABLE _rollout_traces IS 'One row is a rollout of a run in one trace.';

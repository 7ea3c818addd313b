-- One row is a rollout of a run: all its spans, in however many traces.
--
-- A span belongs to the rollout that its own attributes name, else to that of the nearest ancestor
-- with one, else to the only one of its trace.
CREATE VIEW rollouts AS
SELECT
    run_id,
    rollout_id,
    count(*) AS trace_count,
    sum(span_count)::BIGINT AS span_count,
    sum(error_count)::BIGINT AS error_count,
    sum(open_count)::BIGINT AS open_count,
    min(start_time_unix_nano) AS start_time_unix_nano,
    max(end_time_unix_nano) AS end_time_unix_nano,
    max(end_time_unix_nano) - min(start_time_unix_nano) AS duration_ns
FROM _rollout_traces
GROUP BY run_id, rollout_id;

COMMENT ON VIEW rollouts IS 'One row is a rollout of a run: all its spans, in however many traces.';
COMMENT ON COLUMN rollouts.run_id IS 'nemo.run.id; rollout ids repeat from run to run.';
COMMENT ON COLUMN rollouts.rollout_id IS 'nemo.gym.rollout.id.';
COMMENT ON COLUMN rollouts.trace_count IS 'Traces that hold a span of it.';
COMMENT ON COLUMN rollouts.span_count IS 'Spans with its id; those without any count for the nearest ancestor with one, else for the only rollout of the trace.';
COMMENT ON COLUMN rollouts.error_count IS 'Spans with status ERROR.';
COMMENT ON COLUMN rollouts.open_count IS 'Unfinished spans, open or lost.';
COMMENT ON COLUMN rollouts.start_time_unix_nano IS 'Earliest start, ns since 1970.';
COMMENT ON COLUMN rollouts.end_time_unix_nano IS 'Latest end, ns since 1970; an unfinished span counts as far as it was seen.';
COMMENT ON COLUMN rollouts.duration_ns IS 'End less start, ns.';

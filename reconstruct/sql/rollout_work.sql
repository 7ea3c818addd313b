-- One row is a stretch of a rollout's wall time and what it was spent on. The stretches of a rollout
-- lie end to end, from its start to its end.
CREATE VIEW rollout_work AS
SELECT
    work.run_id,
    work.rollout_id,
    work.spent_on,
    span.trace_id,
    span.span_id,
    span.occurrence,
    work.start_time AS start_time_unix_nano,
    work.end_time AS end_time_unix_nano,
    work.end_time - work.start_time AS duration_ns,
    work.is_assumed AS assumed
FROM _rollout_work AS work
LEFT JOIN spans AS span ON span.rowid = work.node;

COMMENT ON VIEW rollout_work IS 'One row is a stretch of a rollout''s wall time and what it was spent on. The stretches of a rollout lie end to end, from its start to its end.';
COMMENT ON COLUMN rollout_work.run_id IS 'nemo.run.id; rollout ids repeat from run to run.';
COMMENT ON COLUMN rollout_work.rollout_id IS 'nemo.gym.rollout.id.';
COMMENT ON COLUMN rollout_work.spent_on IS 'model, tool, verify, sandbox, agent, queue, client_overhead, event_loop_lag, retry or unaccounted; the columns of rollout_shares say what each is.';
COMMENT ON COLUMN rollout_work.trace_id IS '32 lower-case hex digits; null where the rollout waited for none of its spans.';
COMMENT ON COLUMN rollout_work.span_id IS 'The span on the critical path, 16 lower-case hex digits; null like trace_id.';
COMMENT ON COLUMN rollout_work.occurrence IS 'occurrence of that span in spans.';
COMMENT ON COLUMN rollout_work.start_time_unix_nano IS 'Start, ns since 1970.';
COMMENT ON COLUMN rollout_work.end_time_unix_nano IS 'End, ns since 1970.';
COMMENT ON COLUMN rollout_work.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN rollout_work.assumed IS 'As in rollout_path.';

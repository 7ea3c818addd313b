-- One row is a rollout in its step: when it began and ended there, and what the step would have been
-- without it.
CREATE VIEW step_rollouts AS
SELECT
    step.run_id,
    step.step,
    rollout.rollout_id,
    rollout.start_time_unix_nano,
    rollout.end_time_unix_nano,
    rollout.duration_ns,
    rollout.median_ns,
    rollout.is_slow,
    rollout.has_ended,
    rollout.has_failed,
    rollout.start_time_unix_nano - step.start_time_unix_nano AS began_after_ns,
    rollout.rollouts - rollout.nth + 1 AS nth_from_last,
    rollout.held_up_ns
FROM _slow_rollouts AS rollout
JOIN _steps AS step USING (key);

COMMENT ON VIEW step_rollouts IS 'One row is a rollout in its step: when it began and ended there, and what the step would have been without it.';
COMMENT ON COLUMN step_rollouts.run_id IS 'nemo.run.id.';
COMMENT ON COLUMN step_rollouts.step IS 'Number of the step in its run, as in steps.';
COMMENT ON COLUMN step_rollouts.rollout_id IS 'nemo.gym.rollout.id.';
COMMENT ON COLUMN step_rollouts.start_time_unix_nano IS 'Earliest start, ns since 1970.';
COMMENT ON COLUMN step_rollouts.end_time_unix_nano IS 'Latest end, ns since 1970; an unfinished span counts as far as it was seen.';
COMMENT ON COLUMN step_rollouts.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN step_rollouts.median_ns IS 'Median duration of the rollouts of its step, ns.';
COMMENT ON COLUMN step_rollouts.is_slow IS 'Whether it took longer than one and a half times that median.';
COMMENT ON COLUMN step_rollouts.has_ended IS 'Whether its outermost span has ended.';
COMMENT ON COLUMN step_rollouts.has_failed IS 'Whether that or its gym.rollout span ended with ERROR.';
COMMENT ON COLUMN step_rollouts.began_after_ns IS 'From the start of its step to its own, ns.';
COMMENT ON COLUMN step_rollouts.nth_from_last IS 'Place among the rollouts of its step in the order of their ends, backwards: 1 ended last.';
COMMENT ON COLUMN step_rollouts.held_up_ns IS 'How much earlier the last rollout of its step would have ended without this one and those that ended after it, ns, if the others had gone as they did; null for the first to end.';

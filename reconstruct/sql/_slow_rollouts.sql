-- One row is a rollout in a step, how long its peers took at the median, and whether it is slow:
-- longer than one and a half times that.
CREATE VIEW _slow_rollouts AS
WITH
usual AS (
    SELECT
        key,
        quantile_disc(duration_ns, 0.5) AS median_ns,
        count(*) AS rollouts,
        max(end_time_unix_nano) AS last_time
    FROM _step_rollouts
    GROUP BY key
)
SELECT
    rollout.key,
    rollout.rollout_id,
    rollout.start_time_unix_nano,
    rollout.end_time_unix_nano,
    rollout.duration_ns,
    rollout.has_ended,
    rollout.has_failed,
    rollout.nth,
    usual.rollouts,
    usual.median_ns,
    2 * rollout.duration_ns > 3 * usual.median_ns AS is_slow,
    usual.last_time
        - lag(rollout.end_time_unix_nano) OVER (PARTITION BY rollout.key ORDER BY rollout.nth)
        AS held_up_ns
FROM _step_rollouts AS rollout
JOIN usual USING (key);

COMMENT ON VIEW _slow_rollouts IS 'One row is a rollout in a step (key in _steps), how long its peers took at the median, and whether it is slow: longer than one and a half times that.';

-- One row is a rollout, with a number of its own, from 1.
CREATE VIEW _rollout_numbers AS
SELECT
    row_number() OVER (ORDER BY run_id, rollout_id) AS number,
    run_id,
    rollout_id,
    trace_count,
    start_time_unix_nano,
    end_time_unix_nano
FROM rollouts;

COMMENT ON VIEW _rollout_numbers IS 'One row is a rollout, with a number of its own, from 1.';

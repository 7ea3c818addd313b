-- One row is a step: a gym.job span (job: its rowid in spans), or, with null, a run as far as its
-- rollouts were run by none. `key` numbers the steps of all runs, `step` those of its run.
CREATE VIEW _steps AS
WITH
stretch AS (
    SELECT
        run_id,
        rowid AS job,
        (trace_id, span_id, occurrence) AS identity,
        start_time_unix_nano AS start_time,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time
    FROM spans
    WHERE name = 'gym.job'
    UNION ALL
    SELECT
        CASE WHEN job IS NULL THEN run_id END,
        job,
        NULL,
        start_time_unix_nano,
        end_time_unix_nano
    FROM _step_parts
),
whole AS (
    SELECT
        max(run_id) AS run_id,
        job,
        max(identity) AS identity,
        min(start_time) AS start_time,
        max(end_time) AS end_time
    FROM stretch
    GROUP BY job, CASE WHEN job IS NULL THEN run_id END
)
SELECT
    row_number() OVER (ORDER BY run_id NULLS FIRST, start_time, identity NULLS FIRST) AS key,
    row_number() OVER (PARTITION BY run_id ORDER BY start_time, identity NULLS FIRST) AS step,
    run_id,
    job,
    start_time AS start_time_unix_nano,
    end_time AS end_time_unix_nano
FROM whole;

COMMENT ON VIEW _steps IS 'One row is a step: a gym.job span (job: its rowid in spans), or, with null, a run as far as its rollouts were run by none.';

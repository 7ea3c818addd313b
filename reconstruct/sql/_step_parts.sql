-- One row is a rollout of a run in one trace, and the job it was run by: the gym.job span (job: its
-- rowid in spans) of its trace that began last before it; in a trace without one, that of its other
-- traces; null without any.
CREATE VIEW _step_parts AS
WITH
job AS MATERIALIZED (
    SELECT
        trace_id,
        start_time_unix_nano,
        arg_max(rowid, (span_id, occurrence)) AS node,
        row_number() OVER (ORDER BY trace_id, start_time_unix_nano) AS place
    FROM spans
    WHERE name = 'gym.job'
    GROUP BY trace_id, start_time_unix_nano
),
first_job AS (
    SELECT
        trace_id,
        arg_min((node, place), start_time_unix_nano) AS job
    FROM job
    GROUP BY trace_id
),
traced AS MATERIALIZED (
    SELECT
        part.run_id,
        part.rollout_id,
        part.trace_id,
        part.start_time_unix_nano,
        part.end_time_unix_nano,
        coalesce(job.node, first_job.job[1]) AS job,
        coalesce(job.place, first_job.job[2]) AS place
    FROM _rollout_traces AS part
    ASOF LEFT JOIN job
        ON job.trace_id = part.trace_id
        AND job.start_time_unix_nano <= part.start_time_unix_nano
    LEFT JOIN first_job ON first_job.trace_id = part.trace_id
),
of_a_job AS (
    SELECT
        coalesce(run_id, '') AS run,
        rollout_id,
        start_time_unix_nano,
        arg_max(job, place) AS job
    FROM traced
    WHERE job IS NOT NULL
    GROUP BY ALL
),
first_of_a_job AS (
    SELECT
        run,
        rollout_id,
        arg_min(job, start_time_unix_nano) AS job
    FROM of_a_job
    GROUP BY run, rollout_id
)
SELECT
    part.run_id,
    part.rollout_id,
    part.trace_id,
    part.start_time_unix_nano,
    part.end_time_unix_nano,
    coalesce(part.job, other.job, first_other.job) AS job
FROM traced AS part
ASOF LEFT JOIN of_a_job AS other
    ON other.run = coalesce(part.run_id, '')
    AND other.rollout_id = part.rollout_id
    AND other.start_time_unix_nano <= part.start_time_unix_nano
LEFT JOIN first_of_a_job AS first_other
    ON first_other.run = coalesce(part.run_id, '')
    AND first_other.rollout_id = part.rollout_id;

COMMENT ON VIEW _step_parts IS 'One row is a rollout of a run in one trace, and the gym.job span (job: its rowid in spans) that it was run by; null without any.';

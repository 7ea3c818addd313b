-- One row is a step: all rollouts that one gym.job ran, else all of a run; how many at a time, how
-- fast, and for how long the last ones held it up.
--
-- The tail is the last hundredth of its rollouts to end, at least the last one.
CREATE VIEW steps AS
WITH
rollout AS MATERIALIZED (
    SELECT
        key,
        rollout_id,
        start_time_unix_nano AS start_time,
        end_time_unix_nano AS end_time,
        duration_ns,
        has_ended,
        has_failed,
        nth,
        count(*) OVER (PARTITION BY key) AS rollouts
    FROM _step_rollouts
),
level AS (
    SELECT
        key,
        sum(sum(change)) OVER (PARTITION BY key ORDER BY time)::BIGINT AS running
    FROM (
        SELECT
            key,
            start_time AS time,
            1 AS change
        FROM rollout
        UNION ALL
        SELECT
            key,
            end_time,
            -1
        FROM rollout
    )
    GROUP BY key, time
),
peak AS (
    SELECT
        key,
        max(running) AS running
    FROM level
    GROUP BY key
),
total AS (
    SELECT
        key,
        count(*) AS rollouts,
        count(*) FILTER (has_ended) AS finished,
        count(*) FILTER (has_failed) AS failed,
        sum(duration_ns)::BIGINT AS duration_ns,
        quantile_disc(duration_ns, 0.5) AS p50_ns,
        quantile_disc(duration_ns, 0.99) AS p99_ns,
        max(duration_ns) AS longest_ns,
        max(end_time) FILTER (nth <= rollouts - rollouts // 2) AS half_time,
        max(end_time) FILTER (nth <= rollouts - rollouts // 10) AS p90_time,
        max(end_time) FILTER (nth <= rollouts - rollouts // 100) AS p99_time,
        max(end_time) AS last_time,
        max(end_time) FILTER (nth <= rollouts - greatest(rollouts // 100, 1)) AS before_tail_time
    FROM rollout
    GROUP BY key
)
SELECT
    step.run_id,
    step.step,
    job.trace_id,
    job.span_id,
    step.start_time_unix_nano,
    step.end_time_unix_nano,
    step.end_time_unix_nano - step.start_time_unix_nano AS duration_ns,
    coalesce(total.rollouts, 0) AS rollout_count,
    coalesce(total.finished, 0) AS finished_count,
    coalesce(total.failed, 0) AS failed_count,
    coalesce(total.rollouts - total.finished, 0) AS unfinished_count,
    coalesce(total.finished, 0) * 1e9
        / nullif(step.end_time_unix_nano - step.start_time_unix_nano, 0) AS rollouts_per_second,
    coalesce(peak.running, 0) AS peak_concurrency,
    coalesce(total.duration_ns, 0)
        / nullif(step.end_time_unix_nano - step.start_time_unix_nano, 0) AS mean_concurrency,
    total.p50_ns AS duration_p50_ns,
    total.p99_ns AS duration_p99_ns,
    total.longest_ns AS duration_max_ns,
    total.half_time - step.start_time_unix_nano AS ended_p50_ns,
    total.p90_time - step.start_time_unix_nano AS ended_p90_ns,
    total.p99_time - step.start_time_unix_nano AS ended_p99_ns,
    total.last_time - step.start_time_unix_nano AS ended_all_ns,
    greatest(total.rollouts // 100, 1) AS tail_count,
    total.last_time - total.before_tail_time AS tail_ns
FROM _steps AS step
LEFT JOIN total USING (key)
LEFT JOIN peak USING (key)
LEFT JOIN spans AS job ON job.rowid = step.job;

COMMENT ON VIEW steps IS 'One row is a step: all rollouts that one gym.job ran, else all of a run; how many at a time, how fast, and for how long the last ones held it up.';
COMMENT ON COLUMN steps.run_id IS 'nemo.run.id.';
COMMENT ON COLUMN steps.step IS 'Number of the step in its run, in the order of their starts, from 1.';
COMMENT ON COLUMN steps.trace_id IS 'Trace of its gym.job; null when no gym.job ran these rollouts.';
COMMENT ON COLUMN steps.span_id IS 'Span of its gym.job; null when no gym.job ran these rollouts.';
COMMENT ON COLUMN steps.start_time_unix_nano IS 'Start of its gym.job or of its first rollout, whichever is earlier, ns since 1970.';
COMMENT ON COLUMN steps.end_time_unix_nano IS 'End of its gym.job or of its last rollout, whichever is later, ns since 1970; what is unfinished counts as far as it was seen.';
COMMENT ON COLUMN steps.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN steps.rollout_count IS 'Its rollouts.';
COMMENT ON COLUMN steps.finished_count IS 'Rollouts whose outermost span has ended.';
COMMENT ON COLUMN steps.failed_count IS 'Those of them whose outermost or gym.rollout span ended with ERROR.';
COMMENT ON COLUMN steps.unfinished_count IS 'Rollouts whose outermost span has no end.';
COMMENT ON COLUMN steps.rollouts_per_second IS 'Throughput: finished rollouts by the duration of the step.';
COMMENT ON COLUMN steps.peak_concurrency IS 'The most rollouts at one time.';
COMMENT ON COLUMN steps.mean_concurrency IS 'Rollouts at one time on average over the step.';
COMMENT ON COLUMN steps.duration_p50_ns IS 'Median duration of its rollouts, ns; unfinished ones count as far as they were seen, here and below.';
COMMENT ON COLUMN steps.duration_p99_ns IS '99 % of its rollouts took at most so long, ns.';
COMMENT ON COLUMN steps.duration_max_ns IS 'Duration of its longest rollout, ns.';
COMMENT ON COLUMN steps.ended_p50_ns IS 'From its start until half of its rollouts had ended, ns.';
COMMENT ON COLUMN steps.ended_p90_ns IS 'From its start until 90 % of its rollouts had ended, ns.';
COMMENT ON COLUMN steps.ended_p99_ns IS 'From its start until 99 % of its rollouts had ended, ns.';
COMMENT ON COLUMN steps.ended_all_ns IS 'From its start until the last of its rollouts had ended, ns.';
COMMENT ON COLUMN steps.tail_count IS 'Rollouts in the tail: the last hundredth to end, at least one.';
COMMENT ON COLUMN steps.tail_ns IS 'How much earlier its last rollout would have ended without the tail, ns, if the others had gone as they did; null when nothing else ran.';

-- One row is a call path in two cohorts of rollouts, or of traces: how often it is gone, how long it
-- takes, and how much of the mean rollout's time it is to blame for, in A and in B. `cohorts` names
-- the relation that says what is compared (see _cohort_spans).
--
-- One more row is the whole rollout, and one what no span in it is to blame for: the time between
-- its traces, negative where they overlap. The differences of all others add up to the whole's.
--
-- The interval is Welch's, of the difference of the means over rollouts: a rollout without the path
-- counts as 0. It is widened (Bonferroni) so that all intervals but the whole's hold together with
-- 95 %. Fewer than 5 rollouts tell nothing about chance.
CREATE MACRO path_changes_of(cohorts) AS TABLE (
    WITH
    member AS MATERIALIZED (
        SELECT
            cohort.unit,
            cohort.is_b,
            path.call_path,
            span.end_time_unix_nano - span.start_time_unix_nano AS duration_ns,
            span.status_code = 'ERROR' AS has_failed,
            coalesce(own.self_time_ns, 0) AS self_time_ns,
            coalesce(blamed.blame_ns, 0) AS blame_ns,
            cohort.start_time_unix_nano,
            cohort.seen_until_unix_nano
        FROM _cohort_spans(cohorts) AS cohort
        JOIN _span_paths AS path ON path.node = cohort.node
        JOIN spans AS span ON span.rowid = cohort.node
        LEFT JOIN _self_times AS own ON own.node = cohort.node
        LEFT JOIN _rollout_blames AS blamed ON blamed.node = cohort.node
    ),
    unit AS MATERIALIZED (
        SELECT
            unit,
            is_b,
            max(seen_until_unix_nano) - min(start_time_unix_nano) AS wall_ns,
            sum(blame_ns)::BIGINT AS blame_ns
        FROM member
        GROUP BY unit, is_b
    ),
    cohort_size AS (
        SELECT
            count(*) FILTER (NOT is_b) AS size_a,
            count(*) FILTER (is_b) AS size_b
        FROM unit
    ),
    unit_path AS (
        SELECT
            'path' AS part,
            unit,
            is_b,
            call_path,
            count(*) AS spans,
            count(*) FILTER (has_failed) AS failed,
            sum(self_time_ns)::BIGINT AS self_time_ns,
            sum(blame_ns)::BIGINT AS blame_ns
        FROM member
        GROUP BY unit, is_b, call_path
        UNION ALL
        SELECT 'whole', unit, is_b, NULL, NULL, NULL, NULL, wall_ns
        FROM unit
        UNION ALL
        SELECT 'outside', unit, is_b, NULL, NULL, NULL, NULL, wall_ns - blame_ns
        FROM unit
    ),
    -- Of the rollouts that have it; those that have not are added below.
    summed AS (
        SELECT
            part,
            is_b,
            call_path,
            count(*) AS units,
            sum(spans)::BIGINT AS spans,
            sum(failed)::BIGINT AS failed,
            sum(self_time_ns)::BIGINT AS self_time_ns,
            sum(blame_ns)::BIGINT AS blame_ns,
            coalesce(var_pop(blame_ns), 0) * count(*) AS blame_spread
        FROM unit_path
        GROUP BY part, is_b, call_path
    ),
    timed AS (
        SELECT
            'path' AS part,
            is_b,
            call_path,
            quantile_disc(duration_ns, [0.5, 0.95]) AS durations
        FROM member
        GROUP BY is_b, call_path
        UNION ALL
        SELECT 'whole', is_b, NULL, quantile_disc(wall_ns, [0.5, 0.95])
        FROM unit
        GROUP BY is_b
    ),
    side AS (
        SELECT
            summed.*,
            timed.durations,
            CASE WHEN summed.is_b THEN size.size_b ELSE size.size_a END AS size
        FROM summed
        CROSS JOIN cohort_size AS size
        LEFT JOIN timed
            ON timed.part = summed.part
            AND timed.is_b = summed.is_b
            AND timed.call_path IS NOT DISTINCT FROM summed.call_path
    ),
    pair AS (
        SELECT
            part,
            call_path,
            coalesce(any_value(units) FILTER (NOT is_b), 0) AS units_a,
            coalesce(any_value(units) FILTER (is_b), 0) AS units_b,
            any_value(spans / size) FILTER (NOT is_b) AS spans_a,
            any_value(spans / size) FILTER (is_b) AS spans_b,
            any_value(failed / spans) FILTER (NOT is_b) AS failed_a,
            any_value(failed / spans) FILTER (is_b) AS failed_b,
            any_value(durations) FILTER (NOT is_b) AS durations_a,
            any_value(durations) FILTER (is_b) AS durations_b,
            any_value(self_time_ns / size) FILTER (NOT is_b) AS self_time_a,
            any_value(self_time_ns / size) FILTER (is_b) AS self_time_b,
            coalesce(any_value(blame_ns / size) FILTER (NOT is_b), 0) AS blame_a,
            coalesce(any_value(blame_ns / size) FILTER (is_b), 0) AS blame_b,
            -- The variance of the mean: the spread of those that have it, and of the others' zeros.
            coalesce(
                any_value(
                    (blame_spread + pow(blame_ns, 2) / units * (size - units) / size)
                    / nullif(size - 1, 0) / size
                ) FILTER (NOT is_b),
                0
            ) AS error_a,
            coalesce(
                any_value(
                    (blame_spread + pow(blame_ns, 2) / units * (size - units) / size)
                    / nullif(size - 1, 0) / size
                ) FILTER (is_b),
                0
            ) AS error_b
        FROM side
        GROUP BY part, call_path
    ),
    judged AS (
        SELECT
            pair.*,
            size.size_a,
            size.size_b,
            0.025 / CASE
                WHEN part = 'whole' THEN 1
                ELSE count(*) FILTER (part <> 'whole') OVER ()
            END AS tail,
            pow(error_a + error_b, 2) / nullif(
                pow(error_a, 2) / nullif(size.size_a - 1, 0)
                + pow(error_b, 2) / nullif(size.size_b - 1, 0),
                0
            ) AS df
        FROM pair
        CROSS JOIN cohort_size AS size
    ),
    bounded AS (
        SELECT
            *,
            CASE
                WHEN least(size_a, size_b) < 5 THEN NULL
                WHEN error_a + error_b = 0 THEN 0
                ELSE _student_quantile(tail, _normal_quantile(tail), df) * sqrt(error_a + error_b)
            END AS margin
        FROM judged
    )
    SELECT
        bounded.part,
        path.service_name,
        path.name,
        path.call_path,
        path.parent_call_path,
        path.depth,
        path.calls,
        bounded.units_a AS rollouts_a,
        bounded.units_b AS rollouts_b,
        bounded.spans_a,
        bounded.spans_b,
        bounded.failed_a,
        bounded.failed_b,
        bounded.durations_a[1] AS duration_p50_a_ns,
        bounded.durations_b[1] AS duration_p50_b_ns,
        bounded.durations_a[2] AS duration_p95_a_ns,
        bounded.durations_b[2] AS duration_p95_b_ns,
        round(bounded.self_time_a)::BIGINT AS self_time_a_ns,
        round(bounded.self_time_b)::BIGINT AS self_time_b_ns,
        round(bounded.blame_a)::BIGINT AS blame_a_ns,
        round(bounded.blame_b)::BIGINT AS blame_b_ns,
        round(bounded.blame_b - bounded.blame_a)::BIGINT AS difference_ns,
        bounded.blame_b / nullif(bounded.blame_a, 0) AS ratio,
        round(bounded.blame_b - bounded.blame_a - bounded.margin)::BIGINT AS low_ns,
        round(bounded.blame_b - bounded.blame_a + bounded.margin)::BIGINT AS high_ns,
        abs(bounded.blame_b - bounded.blame_a) > bounded.margin AS is_real
    FROM bounded
    LEFT JOIN call_paths AS path ON path.call_path = printf('%016x', bounded.call_path)
);

COMMENT ON MACRO TABLE path_changes_of IS 'One row is a call path in two cohorts of rollouts, or of traces: how often it is gone, how long it takes, and how much of the mean rollout''s time it is to blame for, in A and in B; `cohorts` names a relation of what is compared: cohort (''A'' or ''B''), run_id, rollout_id, trace_id, a row for each trace of a rollout; a null rollout_id is the whole trace.';

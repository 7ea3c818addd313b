-- One row is a span (node: its rowid in spans) of a cohort, and the number of the rollout, or trace,
-- that it is in. `cohorts` names a relation of what is compared: cohort ('A' or 'B'), run_id,
-- rollout_id and trace_id, a row for each trace of a rollout; a null rollout_id is the whole trace.
CREATE MACRO _cohort_spans(cohorts) AS TABLE (
    WITH
    part AS MATERIALIZED (
        SELECT
            cohort = 'B' AS is_b,
            run_id,
            rollout_id,
            trace_id,
            dense_rank() OVER (
                ORDER BY
                    cohort,
                    run_id,
                    rollout_id,
                    CASE WHEN rollout_id IS NULL THEN trace_id END
            ) AS unit
        FROM query_table(cohorts)
    )
    SELECT
        span.node,
        part.unit,
        part.is_b,
        span.start_time_unix_nano,
        span.seen_until_unix_nano
    FROM part
    JOIN _rollout_spans AS span
        ON span.trace_id = part.trace_id
        AND span.rollout_id = part.rollout_id
        AND span.run_id IS NOT DISTINCT FROM part.run_id
    UNION ALL
    SELECT
        span.rowid,
        part.unit,
        part.is_b,
        span.start_time_unix_nano,
        coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns)
    FROM part
    JOIN spans AS span ON span.trace_id = part.trace_id
    WHERE part.rollout_id IS NULL
);

COMMENT ON MACRO TABLE _cohort_spans IS 'One row is a span of a cohort, and the number of the rollout, or trace, that it is in.';

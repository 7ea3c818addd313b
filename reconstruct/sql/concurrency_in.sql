-- One row is one of so many equal parts (buckets) of the time from since to until, ns since 1970, and
-- how much went on in it. Null is the run's own start or end.
--
-- Part n begins at since + n * length // buckets, so no two overlap and none is left out. Most
-- stretches lie within one part; only those that do not are cut.
CREATE MACRO concurrency_in(since, until, buckets) AS TABLE (
    WITH
    level AS MATERIALIZED (
        SELECT
            run_id,
            counted,
            service_name,
            running,
            start_time_unix_nano AS first_ns,
            end_time_unix_nano AS last_ns
        FROM concurrency
        WHERE (until IS NULL OR start_time_unix_nano < until)
            AND (since IS NULL OR end_time_unix_nano > since)
    ),
    whole AS (
        SELECT
            run_id,
            coalesce(since, min(first_ns)) AS from_ns,
            coalesce(until, max(last_ns)) - coalesce(since, min(first_ns)) AS length_ns
        FROM level
        GROUP BY run_id
    ),
    -- Times from here on are from the whole's start; HUGEINT, since years times parts are no BIGINT.
    stretch AS MATERIALIZED (
        SELECT
            level.run_id,
            level.counted,
            level.service_name,
            level.running,
            whole.from_ns,
            whole.length_ns,
            greatest(level.first_ns - whole.from_ns, 0) AS first_ns,
            least(level.last_ns - whole.from_ns, whole.length_ns) AS last_ns,
            (
                (greatest(level.first_ns - whole.from_ns, 0)::HUGEINT * buckets + buckets - 1)
                // whole.length_ns
            )::BIGINT AS first_bucket,
            (
                (least(level.last_ns - whole.from_ns, whole.length_ns)::HUGEINT * buckets - 1)
                // whole.length_ns
            )::BIGINT AS last_bucket
        FROM level
        JOIN whole ON whole.run_id IS NOT DISTINCT FROM level.run_id
        WHERE whole.length_ns > 0
    ),
    piece AS (
        SELECT
            run_id,
            counted,
            service_name,
            running,
            from_ns,
            length_ns,
            first_bucket AS bucket,
            last_ns - first_ns AS covered_ns
        FROM stretch
        WHERE first_bucket = last_bucket
        UNION ALL
        SELECT
            run_id,
            counted,
            service_name,
            running,
            from_ns,
            length_ns,
            bucket,
            least(last_ns, (length_ns::HUGEINT * (bucket + 1) // buckets)::BIGINT)
                - greatest(first_ns, (length_ns::HUGEINT * bucket // buckets)::BIGINT)
        FROM (
            SELECT
                *,
                unnest(generate_series(first_bucket, last_bucket)) AS bucket
            FROM stretch
            WHERE first_bucket < last_bucket
        )
    ),
    part AS (
        SELECT
            run_id,
            counted,
            service_name,
            bucket,
            any_value(from_ns) AS from_ns,
            any_value(length_ns)::HUGEINT * bucket // buckets AS begins_after_ns,
            any_value(length_ns)::HUGEINT * (bucket + 1) // buckets AS ends_after_ns,
            sum(running::HUGEINT * covered_ns) AS work_ns,
            max(running) AS max_running
        FROM piece
        WHERE covered_ns > 0
        GROUP BY run_id, counted, service_name, bucket
    )
    SELECT
        run_id,
        counted,
        service_name,
        bucket + 1 AS bucket,
        (from_ns + begins_after_ns)::BIGINT AS start_time_unix_nano,
        (from_ns + ends_after_ns)::BIGINT AS end_time_unix_nano,
        work_ns::DOUBLE / (ends_after_ns - begins_after_ns)::DOUBLE AS mean_running,
        max_running
    FROM part
);

COMMENT ON MACRO TABLE concurrency_in IS 'One row is one of so many equal parts (buckets) of the time from since to until, ns since 1970 (null: of the run), with how much went on in it: on average over its time (mean_running) and at most (max_running); counted as in concurrency. Parts in which nothing is known are left out.';

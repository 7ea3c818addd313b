-- One row is one of so many equal parts (buckets) of the time from since to until, ns since
-- 1970, and how much went on in it. Null is the run's own start or end.
CREATE MACRO concurrency_in(since, until, buckets) AS TABLE (
    WITH
    stretch AS (
        SELECT
            run_id,
            counted,
            service_name,
            running,
            start_time_unix_nano AS first_ns,
            end_time_unix_nano AS last_ns,
            coalesce(
                since,
                min(start_time_unix_nano) OVER (PARTITION BY run_id)
            )::HUGEINT AS from_ns,
            coalesce(
                until,
                max(end_time_unix_nano) OVER (PARTITION BY run_id)
            )::HUGEINT AS until_ns
        FROM concurrency
        WHERE (until IS NULL OR start_time_unix_nano < until)
            AND (since IS NULL OR end_time_unix_nano > since)
    ),
    -- Part n is from from_ns + n * length // buckets on, so no two overlap and none is left out.
    part AS (
        SELECT
            run_id,
            counted,
            service_name,
            running,
            greatest(first_ns, from_ns) AS first_ns,
            least(last_ns, until_ns) AS last_ns,
            from_ns,
            until_ns,
            unnest(
                generate_series(
                    (((greatest(first_ns, from_ns) - from_ns) * buckets) // (until_ns - from_ns))
                        ::BIGINT,
                    least(
                        ((least(last_ns, until_ns) - from_ns) * buckets) // (until_ns - from_ns),
                        buckets - 1
                    )::BIGINT
                )
            ) AS bucket
        FROM stretch
        WHERE until_ns > from_ns
    ),
    bounded AS (
        SELECT
            run_id,
            counted,
            service_name,
            bucket,
            running,
            first_ns,
            last_ns,
            from_ns + (until_ns - from_ns) * bucket // buckets AS bucket_start,
            from_ns + (until_ns - from_ns) * (bucket + 1) // buckets AS bucket_end
        FROM part
    )
    SELECT
        run_id,
        counted,
        service_name,
        bucket + 1 AS bucket,
        any_value(bucket_start)::BIGINT AS start_time_unix_nano,
        any_value(bucket_end)::BIGINT AS end_time_unix_nano,
        sum(running * (least(last_ns, bucket_end) - greatest(first_ns, bucket_start)))::DOUBLE
            / any_value(bucket_end - bucket_start)::DOUBLE AS mean_running,
        max(running) AS max_running
    FROM bounded
    WHERE least(last_ns, bucket_end) > greatest(first_ns, bucket_start)
    GROUP BY run_id, counted, service_name, bucket
);

COMMENT ON MACRO TABLE concurrency_in IS 'One row is one of so many equal parts (buckets) of the time from since to until, ns since 1970 (null: of the run), with how much went on in it: on average over its time (mean_running) and at most (max_running); counted as in concurrency. Parts in which nothing is known are left out.';

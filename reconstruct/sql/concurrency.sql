-- One row is a stretch of time in which as much went on: rollouts of a run, or requests that one of
-- its services served.
CREATE VIEW concurrency AS
WITH
work AS (
    SELECT
        run_id,
        'rollouts' AS counted,
        NULL::VARCHAR AS service_name,
        start_time_unix_nano AS start_time,
        end_time_unix_nano AS end_time
    FROM rollouts
    UNION ALL
    SELECT
        run_id,
        'requests',
        service_name,
        start_time_unix_nano,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns)
    FROM spans
    WHERE kind = 'SERVER'
),
change AS (
    SELECT
        run_id,
        counted,
        service_name,
        start_time AS time,
        1 AS change
    FROM work
    WHERE end_time > start_time
    UNION ALL
    SELECT
        run_id,
        counted,
        service_name,
        end_time,
        -1
    FROM work
    WHERE end_time > start_time
),
level AS (
    SELECT
        run_id,
        counted,
        service_name,
        time AS start_time,
        lead(time) OVER later AS end_time,
        sum(sum(change)) OVER later::BIGINT AS running
    FROM change
    GROUP BY run_id, counted, service_name, time
    HAVING sum(change) <> 0
    WINDOW later AS (PARTITION BY run_id, counted, service_name ORDER BY time)
)
SELECT
    run_id,
    counted,
    service_name,
    start_time AS start_time_unix_nano,
    end_time AS end_time_unix_nano,
    end_time - start_time AS duration_ns,
    running
FROM level
WHERE end_time IS NOT NULL;

COMMENT ON VIEW concurrency IS 'One row is a stretch of time in which as much went on: rollouts of a run, or requests that one of its services served; concurrency_in(since, until, buckets) gives it for so many equal parts of a time.';
COMMENT ON COLUMN concurrency.run_id IS 'nemo.run.id.';
COMMENT ON COLUMN concurrency.counted IS 'What is counted: rollouts, or requests, the SERVER spans of a service. Unfinished ones count as far as they were seen.';
COMMENT ON COLUMN concurrency.service_name IS 'service.name of who served the requests; null of rollouts.';
COMMENT ON COLUMN concurrency.start_time_unix_nano IS 'Start of the stretch, ns since 1970.';
COMMENT ON COLUMN concurrency.end_time_unix_nano IS 'End of the stretch, ns since 1970; the next one starts there.';
COMMENT ON COLUMN concurrency.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN concurrency.running IS 'How many went on all that time; 0 between two that did not touch.';

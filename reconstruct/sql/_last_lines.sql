-- One row is a service instance that stopped or died, and where the last line it wrote lies.
CREATE VIEW _last_lines AS
WITH
gone AS (
    SELECT
        owner,
        instance
    FROM _owner_instances
    WHERE state IN ('stopped', 'dead')
),
written AS (
    SELECT
        owner,
        coalesce(seq, greatest(start_time_unix_nano, end_time_unix_nano)) AS place,
        file,
        line
    FROM _span_lines
    UNION ALL
    SELECT
        owner,
        coalesce(seq, time_unix_nano),
        file,
        line
    FROM _log_lines
    UNION ALL
    SELECT
        owner,
        coalesce(seq, time_unix_nano),
        file,
        line
    FROM _metric_lines
    UNION ALL
    SELECT
        owner,
        coalesce(seq, time_unix_nano),
        file,
        line
    FROM _process_lines
),
last_place AS (
    SELECT
        gone.instance,
        max(written.place) AS place
    FROM written
    JOIN gone USING (owner)
    GROUP BY gone.instance
)
SELECT
    last_place.instance,
    max((written.line, written.file))[2] AS file,
    max((written.line, written.file))[1] AS line
FROM written
JOIN gone USING (owner)
JOIN last_place
    ON last_place.instance = gone.instance
    AND last_place.place = written.place
GROUP BY last_place.instance;

COMMENT ON VIEW _last_lines IS 'One row is a service instance that stopped or died, and where the last line it wrote lies.';

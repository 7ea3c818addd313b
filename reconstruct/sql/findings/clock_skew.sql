-- One row is two hosts of a run whose clocks differ: the one behind, and the one ahead.
--
-- Spans of one tell it that start before their parents on the other, and requests that start when
-- the call that they belong to, which succeeded, has ended. Each bounds the difference from below. A
-- difference of 100 ms and more is a warning.
CREATE VIEW _finding_clock_skew AS
WITH
skewed AS (
    SELECT
        run_id,
        trace_id,
        span_id,
        file,
        line,
        early_ns > 1000000 AS is_early,
        CASE WHEN is_early THEN clock ELSE parent_clock END AS slow_clock,
        CASE WHEN is_early THEN parent_clock ELSE clock END AS fast_clock,
        CASE WHEN is_early THEN host ELSE parent_host END AS slow_host,
        CASE WHEN is_early THEN parent_host ELSE host END AS fast_host,
        CASE WHEN is_early THEN early_ns ELSE after_ns END AS least_ns
    FROM _outside_spans
    WHERE clock <> parent_clock
        AND (
            early_ns > 1000000
            OR (
                after_ns > 1000000
                AND kind = 'SERVER'
                AND parent_kind = 'CLIENT'
                AND NOT has_parent_failed
            )
        )
),
clock_pair AS (
    SELECT
        run_id,
        min(slow_host) AS slow_host,
        min(fast_host) AS fast_host,
        count(*) AS edges,
        max(least_ns) AS least_ns,
        arg_max(trace_id, (least_ns, span_id)) AS trace_id,
        arg_max(span_id, (least_ns, span_id)) AS span_id,
        arg_max(file, (least_ns, span_id)) AS file,
        arg_max(line, (least_ns, span_id)) AS line
    FROM skewed
    GROUP BY run_id, slow_clock, fast_clock
)
SELECT
    'clock_skew' AS code,
    CASE WHEN least_ns >= 100000000 THEN 'warning' ELSE 'note' END AS severity,
    'clock' AS cause,
    CASE WHEN edges >= 10 THEN 0.9 ELSE 0.7 END AS confidence,
    run_id,
    trace_id,
    span_id,
    file,
    line,
    slow_host || ' behind ' || fast_host AS place,
    'the clock of ' || slow_host || ' is at least ' || _seconds(least_ns) || ' behind that of '
        || fast_host || ': ' || edges || CASE
            WHEN edges = 1 THEN ' span says so'
            ELSE ' spans say so'
        END || ', by times that cannot be' AS message,
    'times of these hosts cannot be compared, and gaps between them mean nothing: let one source set '
        || 'both clocks (chrony, ntpd); `reconstruct clocks` says how far apart they were' AS hint,
    json_object(
        'least_ns', least_ns,
        'edges', edges,
        'slow_host', slow_host,
        'fast_host', fast_host
    ) AS evidence
FROM clock_pair;

COMMENT ON VIEW _finding_clock_skew IS 'One row is two hosts of a run whose clocks differ: the one behind, and the one ahead.';

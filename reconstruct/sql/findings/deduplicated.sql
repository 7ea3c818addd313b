-- One row is a file in which Ray printed one of several records that looked alike to it.
--
-- Alike is whatever differs only in words with digits. Text that is missing is no concern of traces.
CREATE VIEW _finding_deduplicated AS
WITH survivor AS (
    SELECT
        file,
        line,
        class,
        lost_lines
    FROM _rejected_lines
    WHERE lost_lines > 0
        AND class NOT IN ('text', 'blank')
)
SELECT
    'deduplicated' AS code,
    CASE WHEN bool_and(class = 'json') THEN 'warning' ELSE 'error' END AS severity,
    'lines_lost' AS cause,
    1 AS confidence,
    NULL::VARCHAR AS run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    file,
    min(line) AS line,
    file AS place,
    sum(lost_lines) || CASE WHEN sum(lost_lines) = 1 THEN ' line is' ELSE ' lines are' END
        || ' missing from ' || file || ': Ray printed only the last of several that looked alike, first at line '
        || min(line) AS message,
    'set RAY_DEDUP_LOGS=0 for the driver, or read the workers'' own files (session_*/logs/worker-*.out), which lack nothing' AS hint,
    json_object(
        'lost_lines', sum(lost_lines)::BIGINT,
        'lines', count(*),
        'first_lines', list(line ORDER BY line)[:10]
    ) AS evidence
FROM survivor
GROUP BY file;

COMMENT ON VIEW _finding_deduplicated IS 'One row is a file in which Ray printed one of several records that looked alike to it.';

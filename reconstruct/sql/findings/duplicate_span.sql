-- One row is a file with records that other lines have already given.
CREATE VIEW _finding_duplicate_span AS
SELECT
    'duplicate_span' AS code,
    'note' AS severity,
    'read_twice' AS cause,
    1 AS confidence,
    NULL::VARCHAR AS run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    file,
    min(line) AS line,
    file AS place,
    count(*) || ' records of ' || file || ' are repeated from ' || min(kept_place)
        || CASE WHEN count(*) > 1 THEN ' and other lines' ELSE '' END AS message,
    'each counts once; the same lines were collected twice, or a rotated file overlaps' AS hint,
    json_object('records', count(*), 'first_kept', min(kept_place)) AS evidence
FROM _duplicate_lines
GROUP BY file;

COMMENT ON VIEW _finding_duplicate_span IS 'One row is a file with records that other lines have already given.';

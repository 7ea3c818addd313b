-- One row is a file that could not be read to its end.
CREATE VIEW _finding_damaged_file AS
SELECT
    'damaged_file' AS code,
    'error' AS severity,
    NULL::VARCHAR AS run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    file,
    lines AS line,
    file AS place,
    file || ' after ' || lines || ' lines: ' || problem AS message,
    'the lines before that were read; copy the file again' AS hint,
    json_object('problem', problem, 'lines', lines, 'bytes', bytes) AS evidence
FROM _files
WHERE problem IS NOT NULL;

COMMENT ON VIEW _finding_damaged_file IS 'One row is a file that could not be read to its end.';

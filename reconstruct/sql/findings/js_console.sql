-- One row is a file with spans of OpenTelemetry's console exporter for JavaScript.
CREATE VIEW _finding_js_console AS
SELECT
    'js_console' AS code,
    'warning' AS severity,
    NULL::VARCHAR AS run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    file,
    min(line) AS line,
    file AS place,
    count(*) || CASE WHEN count(*) = 1 THEN ' span' ELSE ' spans' END || ' in ' || file
        || ' cannot be read: the console exporter of OpenTelemetry for JavaScript does not write JSON, first at line '
        || min(line) AS message,
    'let the program send OTLP to a collector with the file exporter, and read the file of OTLP/JSON lines that it writes'
        AS hint,
    json_object('spans', count(*), 'first_lines', list(line ORDER BY line)[:10]) AS evidence
FROM _rejected_lines
WHERE class = 'text'
    AND reason = 'a span of OpenTelemetry''s console exporter for JavaScript, which is not JSON'
GROUP BY file;

COMMENT ON VIEW _finding_js_console IS 'One row is a file with spans of OpenTelemetry''s console exporter for JavaScript.';

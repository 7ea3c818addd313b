-- One row is a service of which spans had the ids of their callers' spans.
CREATE VIEW _finding_shared_id AS
SELECT
    'shared_id' AS code,
    'note' AS severity,
    NULL::VARCHAR AS run_id,
    min(trace_id) AS trace_id,
    arg_min(span_id, (trace_id, span_id)) AS span_id,
    arg_min(file, (file, line)) AS file,
    arg_min(line, (file, line)) AS line,
    coalesce(service_name, 'unknown') AS place,
    count(DISTINCT (trace_id, span_id))
        || CASE WHEN count(DISTINCT (trace_id, span_id)) = 1 THEN ' span of ' ELSE ' spans of ' END
        || coalesce(service_name, 'an unknown service')
        || ' had the id of the caller''s span, and got an id of its own' AS message,
    'nothing is wrong: Zipkin lets client and server share an id; these ids are not in the file'
        AS hint,
    json_object('spans', count(DISTINCT (trace_id, span_id)), 'shared_span_id', min(shared_span_id)) AS evidence
FROM _shared_span_lines
GROUP BY service_name;

COMMENT ON VIEW _finding_shared_id IS 'One row is a service of which spans had the ids of their callers'' spans.';

-- One row is a span that ends before it starts.
CREATE VIEW _finding_negative_duration AS
SELECT
    'negative_duration' AS code,
    'error' AS severity,
    run_id,
    trace_id,
    span_id,
    file,
    line,
    _span_label(name, service_name) AS place,
    _span_label(name, service_name) || ' ends ' || _seconds(-duration_ns)
        || ' before it starts' AS message,
    'the writer took its times from a clock that was set back' AS hint,
    json_object('duration_ns', duration_ns) AS evidence
FROM spans
WHERE duration_ns < 0;

COMMENT ON VIEW _finding_negative_duration IS 'One row is a span that ends before it starts.';

-- One row is a service whose span names hold what differs from call to call: at least 50 names of it
-- are one where URLs, ids and numbers are taken out.
CREATE VIEW _finding_many_names AS
WITH
span_name AS (
    SELECT
        service_name,
        name,
        count(*) AS spans,
        min((trace_id, span_id, file, line)) AS first_span
    FROM spans
    GROUP BY service_name, name
),
crowded AS (
    SELECT service_name
    FROM span_name
    GROUP BY service_name
    HAVING count(*) >= 50
),
masked AS (
    SELECT
        span.service_name,
        span.name,
        span.spans,
        span.first_span,
        regexp_replace(
            span.name,
            '[a-z]+://\S+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]*\b|[0-9]+',
            '*',
            'g'
        ) AS pattern
    FROM span_name AS span
    JOIN crowded ON crowded.service_name IS NOT DISTINCT FROM span.service_name
)
SELECT
    'many_names' AS code,
    'note' AS severity,
    NULL::VARCHAR AS run_id,
    arg_min(first_span[1], name) AS trace_id,
    arg_min(first_span[2], name) AS span_id,
    arg_min(first_span[3], name) AS file,
    arg_min(first_span[4], name) AS line,
    _span_label(pattern, service_name) AS place,
    count(*) || ' names of spans are ' || _span_label(pattern, service_name) || ' but for ids or numbers: '
        || array_to_string(list(name ORDER BY name)[:3], ', ') || ' …' AS message,
    'names are what spans are counted by: leave the ids out of them, and give them as attributes' AS hint,
    json_object(
        'pattern', pattern,
        'names', count(*),
        'spans', sum(spans)::BIGINT,
        'first_names', list(name ORDER BY name)[:10]
    ) AS evidence
FROM masked
WHERE pattern <> name
GROUP BY service_name, pattern
HAVING count(*) >= 50;

COMMENT ON VIEW _finding_many_names IS 'One row is a service whose span names hold what differs from call to call.';

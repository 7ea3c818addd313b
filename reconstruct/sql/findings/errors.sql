-- One row is a kind of span that fails of itself: it is the cause of errors (see _error_causes).
CREATE VIEW _finding_errors AS
WITH
source AS (
    SELECT
        span.name,
        span.service_name,
        span.run_id,
        span.trace_id,
        span.span_id,
        span.file,
        span.line,
        span.start_time_unix_nano,
        coalesce(found.error_type, found.message, 'no reason given') AS reason
    FROM _error_causes AS found
    JOIN spans AS span ON span.rowid = found.node
),
peers AS (
    SELECT
        name,
        service_name,
        run_id,
        count(*) AS spans
    FROM spans
    GROUP BY name, service_name, run_id
)
SELECT
    'errors' AS code,
    'warning' AS severity,
    source.run_id,
    arg_min(source.trace_id, (source.start_time_unix_nano, source.span_id)) AS trace_id,
    arg_min(source.span_id, (source.start_time_unix_nano, source.span_id)) AS span_id,
    arg_min(source.file, (source.start_time_unix_nano, source.span_id)) AS file,
    arg_min(source.line, (source.start_time_unix_nano, source.span_id)) AS line,
    _span_label(source.name, source.service_name) AS place,
    _span_label(source.name, source.service_name) || ' failed ' || count(*) || ' of '
        || any_value(peers.spans) || ' times ('
        || format('{:.1f} %', 100.0 * count(*) / any_value(peers.spans)) || '): '
        || mode(source.reason ORDER BY source.reason) AS message,
    'the deepest failing spans: what failed above them failed for this; `reconstruct errors` says more' AS hint,
    json_object(
        'failed', count(*),
        'spans', any_value(peers.spans),
        'reasons', list(DISTINCT source.reason ORDER BY source.reason)[:10]
    ) AS evidence
FROM source
JOIN peers
    ON peers.name = source.name
    AND peers.service_name IS NOT DISTINCT FROM source.service_name
    AND peers.run_id IS NOT DISTINCT FROM source.run_id
GROUP BY source.name, source.service_name, source.run_id;

COMMENT ON VIEW _finding_errors IS 'One row is a kind of span that fails of itself: it is the cause of errors.';

-- One row is a trace without a root: every span names a parent.
CREATE VIEW _finding_missing_root AS
SELECT
    'missing_root' AS code,
    'warning' AS severity,
    trace.run_id,
    trace.trace_id,
    first_span.span_id,
    first_span.file,
    first_span.line,
    _span_label(first_span.name, first_span.service_name) AS place,
    'no root: the trace begins with ' || _span_label(first_span.name, first_span.service_name)
        || coalesce(', rollout ' || trace.rollout_id, '') AS message,
    'the root had not ended when the logs end, or its log is not among the inputs' AS hint,
    json_object('span_count', trace.span_count, 'rollout_id', trace.rollout_id) AS evidence
FROM traces AS trace
JOIN (
    SELECT
        trace_id,
        min_by(span.rowid, (span.start_time_unix_nano, span.span_id)) AS node
    FROM spans AS span
    WHERE span.trace_id IN (SELECT trace_id FROM _edges WHERE orphan)
    GROUP BY trace_id
) AS first_edge USING (trace_id)
JOIN spans AS first_span ON first_span.rowid = first_edge.node
WHERE trace.root_count = 0;

COMMENT ON VIEW _finding_missing_root IS 'One row is a trace without a root: every span names a parent.';

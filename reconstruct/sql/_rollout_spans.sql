-- One row is a span and the rollout it belongs to: by its own attribute, else by the nearest
-- ancestor that has one, else by the only rollout of its trace.
CREATE VIEW _rollout_spans AS
SELECT
    span.rowid AS node,
    span.trace_id,
    span.span_id,
    coalesce(span.run_id, trace.run_id) AS run_id,
    coalesce(span.rollout_id, inherited.rollout_id, trace.rollout_id) AS rollout_id,
    span.service_name,
    span.state,
    span.status_code,
    span.start_time_unix_nano,
    coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns)
        AS seen_until_unix_nano
FROM spans AS span
JOIN traces AS trace ON trace.trace_id = span.trace_id
LEFT JOIN _inherited_rollouts AS inherited ON inherited.node = span.rowid
WHERE coalesce(span.rollout_id, inherited.rollout_id, trace.rollout_id) IS NOT NULL;

COMMENT ON VIEW _rollout_spans IS 'One row is a span and the rollout it belongs to.';

-- One row is a span and the rollout it belongs to: by its own attribute, else by the nearest
-- ancestor that has one, else by the only rollout of its trace.
CREATE VIEW _rollout_spans AS
WITH RECURSIVE
heir AS (
    SELECT
        edge.node,
        edge.parent AS ancestor,
        span.rollout_id,
        count(edge.parent) OVER () AS climbing
    FROM _edges AS edge
    JOIN spans AS span ON span.rowid = edge.node
    JOIN traces AS trace ON trace.trace_id = edge.trace_id
    WHERE trace.rollout_count > 1
    UNION ALL
    SELECT
        lower.node,
        upper.ancestor,
        coalesce(lower.rollout_id, upper.rollout_id),
        count(upper.ancestor) OVER ()
    FROM heir AS lower
    LEFT JOIN heir AS upper ON upper.node = lower.ancestor
    WHERE lower.climbing > 0
),
inherited AS (
    SELECT
        node,
        any_value(rollout_id) AS rollout_id -- the nearest stays once it is found
    FROM heir
    GROUP BY node
)
SELECT
    span.rowid AS node,
    span.trace_id,
    span.span_id,
    coalesce(span.run_id, trace.run_id) AS run_id,
    coalesce(span.rollout_id, inherited.rollout_id, trace.rollout_id) AS rollout_id
FROM spans AS span
JOIN traces AS trace ON trace.trace_id = span.trace_id
LEFT JOIN inherited ON inherited.node = span.rowid
WHERE coalesce(span.rollout_id, inherited.rollout_id, trace.rollout_id) IS NOT NULL;

COMMENT ON VIEW _rollout_spans IS 'One row is a span and the rollout it belongs to.';

-- One row is a span of a trace of several rollouts, and the rollout that it or its nearest ancestor
-- names. Ancestors are found by doubling (see _edges).
CREATE TABLE _inherited_rollouts AS
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
)
SELECT
    node,
    any_value(rollout_id) AS rollout_id -- the nearest stays once it is found
FROM heir
GROUP BY node
HAVING any_value(rollout_id) IS NOT NULL;

COMMENT ON TABLE _inherited_rollouts IS 'One row is a span of a trace of several rollouts, and the rollout that it or its nearest ancestor names.';

-- One row is a span and its parent within its rollout, as in _edges: where a rollout begins below
-- the span of another, or of none, its topmost span is a root.
CREATE VIEW _rollout_edges AS
SELECT
    edge.node,
    CASE WHEN child.rollout_id IS NOT DISTINCT FROM above.rollout_id THEN edge.parent END AS parent,
    edge.trace_id,
    edge.start_time_unix_nano,
    edge.end_time_unix_nano,
    edge.open_ns,
    edge.orphan
FROM _edges AS edge
LEFT JOIN _inherited_rollouts AS child ON child.node = edge.node
LEFT JOIN _inherited_rollouts AS above ON above.node = edge.parent;

COMMENT ON VIEW _rollout_edges IS 'One row is a span and its parent within its rollout, as in _edges.';

-- One row is a span (node: its rowid in spans) that lies on the critical path of the topmost span
-- (root_node) of its rollout, and for how long.
--
-- In a trace of one rollout that is the critical path of the trace.
CREATE VIEW _rollout_blames AS
WITH
shared_trace AS MATERIALIZED (
    SELECT trace_id
    FROM traces
    WHERE rollout_count > 1
)
SELECT
    node,
    root_node,
    blame_ns
FROM _blames
WHERE node NOT IN (
    SELECT node
    FROM _edges
    SEMI JOIN shared_trace USING (trace_id)
)
UNION ALL
SELECT
    node,
    root_node,
    sum(duration_ns)::BIGINT
FROM _critical_path_of(
    (SELECT coalesce(list(trace_id), []) FROM shared_trace),
    '_rollout_edges'
)
GROUP BY node, root_node;

COMMENT ON VIEW _rollout_blames IS 'One row is a span (node: its rowid in spans) that lies on the critical path of the topmost span (root_node) of its rollout, and for how long.';

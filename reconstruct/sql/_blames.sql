-- One row is a span (node: its rowid in spans) that lies on the critical path of a root (root_node),
-- and for how long.
CREATE VIEW _blames AS
SELECT
    node,
    root_node,
    sum(duration_ns)::BIGINT AS blame_ns
FROM critical_path_of(NULL)
GROUP BY node, root_node;

COMMENT ON VIEW _blames IS 'One row is a span (node: its rowid in spans) that lies on the critical path of a root (root_node), and for how long.';

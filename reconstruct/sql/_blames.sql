-- One row is a span (node: its rowid in spans) that lies on the critical path of a root (root_node),
-- and for how long.
CREATE VIEW _blames AS
SELECT
    node,
    root AS root_node,
    sum(end_time - start_time)::BIGINT AS blame_ns,
    bool_or(is_assumed) AS assumed
FROM _sections_of(NULL, 'trace', 'clip', 0)
GROUP BY node, root;

COMMENT ON VIEW _blames IS 'One row is a span (node: its rowid in spans) that lies on the critical path of a root (root_node), and for how long.';

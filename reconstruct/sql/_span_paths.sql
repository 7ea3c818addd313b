-- One row is a span (node: its rowid in spans) and its call path: a hash of the services and names
-- from the topmost span of its rollout, or of its trace, down to it.
--
-- Found by doubling (see _edges): in round k a span knows the hash of 2^k steps, put together in the
-- same way for all spans of one depth.
CREATE VIEW _span_paths AS
WITH RECURSIVE
climb AS (
    SELECT
        edge.node,
        edge.parent AS ancestor,
        hash(span.service_name, span.name, edge.orphan) AS call_path,
        count(edge.parent) OVER () AS climbing
    FROM _rollout_edges AS edge
    JOIN spans AS span ON span.rowid = edge.node
    UNION ALL
    SELECT
        lower.node,
        upper.ancestor,
        CASE
            WHEN upper.node IS NULL THEN lower.call_path
            ELSE hash(lower.call_path, upper.call_path)
        END,
        count(upper.ancestor) OVER ()
    FROM climb AS lower
    LEFT JOIN climb AS upper ON upper.node = lower.ancestor
    WHERE lower.climbing > 0
)
SELECT
    node,
    call_path
FROM climb
WHERE climbing = 0;

COMMENT ON VIEW _span_paths IS 'One row is a span (node: its rowid in spans) and its call path: a hash of the services and names from the topmost span of its rollout, or of its trace, down to it.';

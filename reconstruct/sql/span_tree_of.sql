-- One row is a span in its tree; of the traces in the list `ids`, or of all when it is null.
--
-- Sizes of subtrees, then depths and places, are summed up by doubling (see _edges): in round k
-- a span knows what lies within 2^k steps. Spans whose ancestors are all counted stay, since
-- others still add what they hold; it ends when nobody climbs any more. So neither deep nor wide
-- traces cost more than their number of spans times its logarithm.
CREATE MACRO span_tree_of(ids) AS TABLE (
    WITH RECURSIVE
    edge AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.trace_id,
            span.span_id,
            span.parent_span_id,
            span.occurrence,
            edge.start_time_unix_nano,
            edge.orphan,
            edge.cycle,
            edge.is_cut
        FROM _edges AS edge
        JOIN spans AS span ON span.rowid = edge.node
        WHERE ids IS NULL OR edge.trace_id IN (SELECT unnest(ids))
    ),
    heap AS (
        SELECT
            node,
            parent AS ancestor,
            1::BIGINT AS size,
            count(parent) OVER () AS climbing
        FROM edge
        UNION ALL
        SELECT
            lower.node,
            upper.ancestor,
            lower.size + coalesce(under.size, 0)::BIGINT,
            count(upper.ancestor) OVER ()
        FROM heap AS lower
        LEFT JOIN heap AS upper ON upper.node = lower.ancestor
        LEFT JOIN (
            SELECT
                ancestor,
                sum(size) AS size
            FROM heap
            GROUP BY ancestor
        ) AS under ON under.ancestor = lower.node
        WHERE lower.climbing > 0
    ),
    subtree AS (
        SELECT
            node,
            max(size) AS size
        FROM heap
        GROUP BY node
    ),
    root_group AS (
        SELECT
            edge.node,
            min(edge.start_time_unix_nano) OVER (
                PARTITION BY edge.trace_id, edge.parent_span_id
            ) AS group_start
        FROM edge
        WHERE edge.parent IS NULL
    ),
    ranked AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            subtree.size,
            (edge.parent IS NOT NULL)::BIGINT + coalesce(
                sum(subtree.size) OVER (
                    PARTITION BY edge.trace_id, edge.parent
                    ORDER BY
                        edge.is_cut,
                        root_group.group_start,
                        edge.parent_span_id NULLS FIRST,
                        edge.start_time_unix_nano,
                        edge.span_id,
                        edge.occurrence
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ),
                0
            )::BIGINT AS step
        FROM edge
        JOIN subtree USING (node)
        LEFT JOIN root_group USING (node)
    ),
    walk AS (
        SELECT
            node,
            parent AS ancestor,
            (parent IS NOT NULL)::BIGINT AS depth,
            step AS path,
            count(parent) OVER () AS climbing
        FROM ranked
        UNION ALL
        SELECT
            lower.node,
            upper.ancestor,
            lower.depth + coalesce(upper.depth, 0),
            lower.path + coalesce(upper.path, 0),
            count(upper.ancestor) OVER ()
        FROM walk AS lower
        LEFT JOIN walk AS upper ON upper.node = lower.ancestor
        WHERE lower.climbing > 0
    ),
    place AS (
        SELECT
            node,
            max(depth) AS depth,
            max(path) AS path
        FROM walk
        GROUP BY node
    )
    SELECT
        edge.node,
        edge.parent,
        edge.trace_id,
        edge.span_id,
        edge.occurrence,
        place.depth,
        place.path,
        ranked.size AS subtree_span_count,
        edge.orphan,
        edge.cycle
    FROM edge
    JOIN ranked USING (node)
    JOIN place USING (node)
);

COMMENT ON MACRO TABLE span_tree_of IS 'One row is a span in its tree; of the traces in the list `ids`, or of all when it is null.';

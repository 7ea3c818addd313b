-- One row is a section of a critical path: a stretch of time in which the work of one span decided
-- when its root ended. Of the traces in the list `ids`, or of all when it is null; `edges` names the
-- relation that says which span is whose parent: _edges, or one with its columns.
--
-- From the end of a span backwards: the child that ended last by then was waited for, then the one
-- that ended last by that one's start, and so on; what lies between them is the span's own. So the
-- sections of a root lie end to end from its start to its end, and their durations add up to its
-- own. Every span is cut to what its ancestors hold of it; of children that end together the one
-- that started first counts; consumers are not waited for by their producers, nor is what takes
-- no time. Unfinished spans last as long as they are known to be open.
--
-- In a plain trace every span lies within its parent, and no two children overlap: all are waited
-- for. In others what is true of all ancestors, and of all children before a child, is found by
-- doubling (see _edges).
CREATE MACRO _critical_path_of(ids, edges) AS TABLE (
    WITH RECURSIVE
    edge AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.trace_id,
            span.span_id,
            span.occurrence,
            span.kind,
            edge.start_time_unix_nano AS start_time,
            coalesce(edge.end_time_unix_nano, edge.start_time_unix_nano + edge.open_ns) AS end_time
        FROM query_table(edges) AS edge
        JOIN spans AS span ON span.rowid = edge.node
        WHERE ids IS NULL OR edge.trace_id IN (SELECT unnest(ids))
    ),
    placed AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.trace_id,
            edge.start_time,
            edge.end_time,
            above.start_time AS parent_start,
            CASE
                WHEN edge.parent IS NOT NULL THEN max(edge.end_time) OVER (
                    PARTITION BY edge.parent
                    ORDER BY edge.start_time, edge.end_time
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                )
            END AS covered_until,
            edge.end_time > edge.start_time AND (
                edge.parent IS NULL
                OR (
                    edge.start_time >= above.start_time
                    AND edge.end_time <= above.end_time
                    AND NOT (above.kind = 'PRODUCER' AND edge.kind = 'CONSUMER')
                )
            ) AS is_within
        FROM edge
        LEFT JOIN edge AS above ON above.node = edge.parent
    ),
    plain_trace AS MATERIALIZED (
        SELECT
            trace_id,
            any_value(node) FILTER (parent IS NULL) AS root
        FROM placed
        GROUP BY trace_id
        HAVING bool_and(is_within AND coalesce(covered_until <= start_time, TRUE))
            AND count(*) = 1 + count(parent)
    ),
    odd_edge AS MATERIALIZED (
        SELECT edge.*
        FROM edge
        ANTI JOIN plain_trace USING (trace_id)
    ),
    clip AS (
        SELECT
            node,
            parent AS ancestor,
            start_time,
            end_time,
            count(parent) OVER () AS climbing
        FROM odd_edge
        UNION ALL
        SELECT
            lower.node,
            upper.ancestor,
            greatest(lower.start_time, upper.start_time),
            least(lower.end_time, upper.end_time),
            count(upper.ancestor) OVER ()
        FROM clip AS lower
        LEFT JOIN clip AS upper ON upper.node = lower.ancestor
        WHERE lower.climbing > 0
    ),
    clipped AS MATERIALIZED (
        SELECT
            node,
            max(start_time) AS start_time,
            min(end_time) AS end_time
        FROM clip
        GROUP BY node
        HAVING min(end_time) > max(start_time)
    ),
    -- Of the children of a span that end together, one may be waited for.
    child AS MATERIALIZED (
        SELECT
            edge.parent,
            clipped.end_time,
            min(clipped.start_time) AS start_time,
            arg_min(edge.node, (clipped.start_time, edge.span_id, edge.node)) AS node
        FROM odd_edge AS edge
        JOIN clipped USING (node)
        JOIN odd_edge AS above ON above.node = edge.parent
        WHERE NOT (above.kind = 'PRODUCER' AND edge.kind = 'CONSUMER')
        GROUP BY edge.parent, clipped.end_time
    ),
    chain AS (
        SELECT
            child.node,
            earlier.node AS before,
            row_number() OVER (PARTITION BY child.parent ORDER BY child.end_time DESC) = 1
                AS is_reached,
            count(earlier.node) OVER () AS climbing
        FROM child
        ASOF LEFT JOIN child AS earlier
            ON earlier.parent = child.parent
            AND earlier.end_time <= child.start_time
        UNION ALL
        SELECT
            later.node,
            earlier.before,
            later.is_reached OR hit.node IS NOT NULL,
            count(earlier.before) OVER ()
        FROM chain AS later
        LEFT JOIN chain AS earlier ON earlier.node = later.before
        LEFT JOIN (
            SELECT DISTINCT before AS node
            FROM chain
            WHERE is_reached
        ) AS hit ON hit.node = later.node
        WHERE later.climbing > 0
    ),
    waited_for AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent
        FROM odd_edge AS edge
        JOIN clipped USING (node)
        WHERE edge.parent IS NULL
            OR edge.node IN (
                SELECT node
                FROM chain
                WHERE is_reached
            )
    ),
    ascent AS (
        SELECT
            node,
            parent AS ancestor,
            node AS root,
            count(parent) OVER () AS climbing
        FROM waited_for
        UNION ALL
        SELECT
            lower.node,
            upper.ancestor,
            CASE WHEN lower.ancestor IS NULL THEN lower.root ELSE upper.root END,
            count(upper.ancestor) OVER ()
        FROM ascent AS lower
        LEFT JOIN ascent AS upper ON upper.node = lower.ancestor
        WHERE lower.climbing > 0
    ),
    -- Null is the root of what lies below a span that is not waited for itself.
    critical AS MATERIALIZED (
        SELECT
            found.node,
            found.root,
            waited_for.parent,
            clipped.start_time,
            clipped.end_time
        FROM (
            SELECT
                node,
                arg_min(root, climbing) AS root,
                bool_or(root IS NULL) AS is_below_another
            FROM ascent
            GROUP BY node
        ) AS found
        JOIN waited_for USING (node)
        JOIN clipped USING (node)
        WHERE NOT found.is_below_another
    ),
    waited AS MATERIALIZED (
        SELECT
            placed.node,
            plain_trace.root,
            placed.parent,
            coalesce(placed.covered_until, placed.parent_start) AS free_from,
            placed.start_time,
            placed.end_time
        FROM placed
        JOIN plain_trace USING (trace_id)
        UNION ALL
        SELECT
            child.node,
            child.root,
            child.parent,
            coalesce(lag(child.end_time) OVER siblings, above.start_time),
            child.start_time,
            child.end_time
        FROM critical AS child
        LEFT JOIN critical AS above ON above.node = child.parent
        WINDOW siblings AS (PARTITION BY child.parent ORDER BY child.start_time)
    ),
    stretch AS (
        SELECT
            parent AS node,
            root,
            free_from AS start_time,
            start_time AS end_time
        FROM waited
        WHERE parent IS NOT NULL AND start_time > free_from
        UNION ALL
        SELECT
            waited.node,
            waited.root,
            coalesce(last_child.end_time, waited.start_time) AS start_time,
            waited.end_time
        FROM waited
        LEFT JOIN (
            SELECT
                parent,
                max(end_time) AS end_time
            FROM waited
            GROUP BY parent
        ) AS last_child ON last_child.parent = waited.node
        WHERE waited.end_time > coalesce(last_child.end_time, waited.start_time)
    )
    SELECT
        edge.trace_id,
        root.span_id AS root_span_id,
        root.occurrence AS root_occurrence,
        edge.span_id,
        edge.occurrence,
        stretch.start_time AS start_time_unix_nano,
        stretch.end_time AS end_time_unix_nano,
        stretch.end_time - stretch.start_time AS duration_ns,
        stretch.node,
        stretch.root AS root_node
    FROM stretch
    JOIN edge USING (node)
    JOIN edge AS root ON root.node = stretch.root
);

COMMENT ON MACRO TABLE _critical_path_of IS 'One row is a section of a critical path: a stretch of time in which the work of one span decided when its root ended; of the traces in the list `ids`, or of all when it is null, in the trees that the relation named `edges` makes.';

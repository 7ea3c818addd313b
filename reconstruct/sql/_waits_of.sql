-- One row is a span (node: its rowid in spans) cut to what its ancestors hold of it, and whether its
-- root waited for it; of the traces in the list `ids`, or of all when it is null.
--
-- From the end of a span backwards: the child that ended last by then was waited for, then the one
-- that ended last by that one's start, and so on. Of children that end together the one that started
-- first counts; a producer waits for none of its consumers, and nobody for what takes no time. Work
-- of another task counts only when it began after what the own task did before had ended: gathered
-- tasks do, tasks that ran on beside do not. Where children overlap that no task tells apart, which
-- of them was waited for is assumed.
--
-- A server's span for what it receives (ASGI, of OpenTelemetry's instrumentation) lasts while it
-- listens for the caller to hang up, beside the work: nobody waits for it, and it is left out.
--
-- `scope` is 'trace', or 'rollout' for the spans of a rollout in however many traces (see
-- _rollout_edges_of). `outliving` says what becomes of spans that end after their parent: 'clip'
-- cuts them, 'follow' lets every span last until all below it has ended. `overlap` is the share of
-- its parent's duration by which a child may run into the next one and still be over before it; it
-- is cut to that one's start.
--
-- In a plain tree every span lies within its parent, and no two children overlap: all are waited
-- for. In others what is true of all ancestors, and of all children before a child, is found by
-- doubling (see _edges): of ancestors among the spans that have children, for the others have it
-- from their parents. Unfinished spans last as long as they are known to be open.
CREATE MACRO _waits_of(ids, scope, outliving, overlap) AS TABLE (
    WITH RECURSIVE
    ear AS MATERIALIZED (
        SELECT rowid AS node
        FROM _span_lines
        WHERE kind = 'INTERNAL' AND (name LIKE '% http receive' OR name LIKE '% websocket receive')
    ),
    listener AS MATERIALIZED (
        FROM ear
        WHERE node NOT IN (
            SELECT parent
            FROM _edges
            WHERE parent IN (FROM ear)
        )
    ),
    any_edge AS (
        SELECT
            node,
            parent,
            hash(trace_id) AS tree,
            start_time_unix_nano AS start_time,
            coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time
        FROM _edges
        WHERE scope = 'trace' AND (ids IS NULL OR trace_id IN (SELECT unnest(ids)))
        UNION ALL
        SELECT
            node,
            parent,
            tree,
            start_time,
            end_time
        FROM _rollout_edges_of(ids)
        WHERE scope = 'rollout'
    ),
    edge AS MATERIALIZED (
        SELECT
            node,
            parent,
            tree,
            start_time,
            end_time
        FROM any_edge
        WHERE node NOT IN (FROM listener)
    ),
    detached AS MATERIALIZED (
        SELECT edge.node
        FROM _span_lines AS consumer
        JOIN edge ON edge.node = consumer.rowid
        JOIN _span_lines AS producer ON producer.rowid = edge.parent
        WHERE consumer.kind = 'CONSUMER' AND producer.kind = 'PRODUCER'
    ),
    placed AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.tree,
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
            edge.parent IS NULL
                OR (edge.start_time >= above.start_time AND edge.end_time <= above.end_time)
                AS is_within
        FROM edge
        LEFT JOIN edge AS above ON above.node = edge.parent
    ),
    plain_tree AS MATERIALIZED (
        SELECT
            tree,
            any_value(node) FILTER (parent IS NULL) AS root
        FROM placed
        GROUP BY tree
        HAVING bool_and(
            is_within AND end_time > start_time AND coalesce(covered_until <= start_time, TRUE)
        )
            AND count(*) = 1 + count(parent)
            AND tree NOT IN (
                SELECT tree
                FROM edge
                JOIN detached USING (node)
            )
    ),
    odd_edge AS MATERIALIZED (
        SELECT
            node,
            parent,
            tree,
            start_time,
            end_time,
            is_within
        FROM placed
        ANTI JOIN plain_tree USING (tree)
    ),
    run_over AS (
        SELECT
            earlier.node,
            later.start_time AS end_time
        FROM odd_edge AS earlier
        JOIN odd_edge AS above ON above.node = earlier.parent
        ASOF JOIN odd_edge AS later
            ON later.parent = earlier.parent
            AND later.start_time >= greatest(
                earlier.start_time + 1,
                earlier.end_time - (overlap * (above.end_time - above.start_time))::BIGINT
            )
        WHERE overlap > 0 AND later.start_time < earlier.end_time
    ),
    trimmed AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.start_time,
            coalesce(run_over.end_time, edge.end_time) AS end_time,
            overlap > 0 OR outliving = 'follow' OR edge.tree IN (
                SELECT tree
                FROM odd_edge
                WHERE NOT is_within
            ) AS may_spill
        FROM odd_edge AS edge
        LEFT JOIN run_over USING (node)
    ),
    stretch AS (
        SELECT
            node,
            parent AS ancestor,
            end_time AS last_time,
            count(parent) OVER () AS climbing
        FROM trimmed
        WHERE outliving = 'follow'
        UNION ALL
        SELECT
            upper.node,
            higher.ancestor,
            greatest(upper.last_time, lower.last_time),
            count(higher.ancestor) OVER ()
        FROM stretch AS upper
        LEFT JOIN stretch AS higher ON higher.node = upper.ancestor
        LEFT JOIN (
            SELECT
                ancestor,
                max(last_time) AS last_time
            FROM stretch
            GROUP BY ancestor
        ) AS lower ON lower.ancestor = upper.node
        WHERE upper.climbing > 0
    ),
    held AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.start_time,
            coalesce(whole.last_time, edge.end_time) AS end_time,
            edge.may_spill,
            edge.node IN (SELECT node FROM detached) AND (
                outliving = 'clip' OR coalesce(whole.last_time, edge.end_time) <= above.end_time
            ) AS is_detached
        FROM trimmed AS edge
        LEFT JOIN trimmed AS above ON above.node = edge.parent
        LEFT JOIN (
            SELECT
                node,
                last_time
            FROM stretch
            WHERE climbing = 0
        ) AS whole ON whole.node = edge.node
    ),
    joint AS MATERIALIZED (
        SELECT
            node,
            parent,
            start_time,
            end_time
        FROM held
        WHERE may_spill AND node IN (SELECT parent FROM held)
    ),
    clip AS (
        SELECT
            node,
            parent AS ancestor,
            start_time,
            end_time,
            count(parent) OVER () AS climbing
        FROM joint
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
    room AS (
        SELECT
            node,
            max(start_time) AS start_time,
            min(end_time) AS end_time
        FROM clip
        GROUP BY node
    ),
    clipped AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.is_detached,
            greatest(edge.start_time, room.start_time) AS start_time,
            least(edge.end_time, room.end_time) AS end_time
        FROM held AS edge
        LEFT JOIN room ON room.node = edge.parent
        WHERE least(edge.end_time, room.end_time) > greatest(edge.start_time, room.start_time)
    ),
    -- Work without a task of its own is of its parent's.
    work AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.start_time,
            edge.end_time,
            coalesce(hint.task, '') AS task
        FROM clipped AS edge
        LEFT JOIN (
            SELECT
                rowid AS node,
                attributes ->> '$."gymlog.task.id"' AS task
            FROM _span_lines
            WHERE rowid IN (SELECT node FROM clipped)
                AND contains(attributes::VARCHAR, '"gymlog.task.id"')
        ) AS hint ON hint.node = edge.node
        WHERE edge.parent IS NOT NULL AND NOT edge.is_detached
    ),
    crowded AS MATERIALIZED (
        SELECT
            parent AS node,
            bool_or(is_unclear) AS is_confusing
        FROM (
            SELECT
                parent,
                start_time < max(end_time) OVER (
                    PARTITION BY parent
                    ORDER BY start_time, end_time
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS is_beside,
                start_time < max(end_time) OVER (
                    PARTITION BY parent, task
                    ORDER BY start_time, end_time
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS is_unclear
            FROM work
        )
        GROUP BY parent
        HAVING bool_or(is_beside)
    ),
    -- Of the children of a span that end together, in one task, one may be waited for.
    child AS MATERIALIZED (
        SELECT
            work.parent,
            work.task,
            work.end_time,
            min(work.start_time) AS start_time,
            arg_min(work.node, (work.start_time, span.span_id, work.node)) AS node
        FROM work
        JOIN crowded ON crowded.node = work.parent
        LEFT JOIN _span_lines AS span ON span.rowid = work.node
        GROUP BY work.parent, work.task, work.end_time
    ),
    -- Of all tasks, likewise.
    last_child AS MATERIALIZED (
        SELECT
            parent,
            end_time,
            min(start_time) AS start_time,
            arg_min(node, (start_time, task)) AS node
        FROM child
        GROUP BY parent, end_time
    ),
    link AS MATERIALIZED (
        SELECT
            later.node,
            CASE
                WHEN earlier.start_time < own.end_time THEN own.node
                ELSE earlier.node
            END AS before
        FROM child AS later
        ASOF LEFT JOIN last_child AS earlier
            ON earlier.parent = later.parent
            AND earlier.end_time <= later.start_time
        ASOF LEFT JOIN child AS own
            ON own.parent = later.parent
            AND own.task = later.task
            AND own.end_time <= later.start_time
    ),
    chain AS (
        SELECT
            node,
            before,
            node IN (
                SELECT arg_max(node, end_time)
                FROM last_child
                GROUP BY parent
            ) AS is_reached,
            count(before) OVER () AS climbing
        FROM link
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
    part AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            edge.start_time,
            edge.end_time,
            CASE
                WHEN NOT edge.is_detached THEN edge.parent IS NULL
                    OR above.node IS NULL
                    OR edge.node IN (
                        SELECT node
                        FROM chain
                        WHERE is_reached
                    )
            END AS is_waited_for,
            coalesce(own.is_confusing, FALSE) AS is_confusing
        FROM clipped AS edge
        LEFT JOIN crowded AS above ON above.node = edge.parent
        LEFT JOIN crowded AS own ON own.node = edge.node
    ),
    ascent AS (
        SELECT
            node,
            parent AS ancestor,
            node AS root,
            is_confusing AS is_assumed,
            count(parent) OVER () AS climbing
        FROM part
        WHERE is_waited_for AND node IN (SELECT parent FROM part)
        UNION ALL
        SELECT
            lower.node,
            upper.ancestor,
            CASE WHEN lower.ancestor IS NULL THEN lower.root ELSE upper.root END,
            lower.is_assumed OR coalesce(upper.is_assumed, FALSE),
            count(upper.ancestor) OVER ()
        FROM ascent AS lower
        LEFT JOIN ascent AS upper ON upper.node = lower.ancestor
        WHERE lower.climbing > 0
    ),
    -- Null is the root of what lies below a span that is not waited for itself.
    climbed AS MATERIALIZED (
        SELECT
            node,
            CASE WHEN bool_and(root IS NOT NULL) THEN arg_min(root, climbing) END AS root,
            bool_or(is_assumed) AS is_assumed
        FROM ascent
        GROUP BY node
    ),
    critical AS (
        SELECT
            part.node,
            CASE WHEN part.parent IS NULL THEN part.node ELSE up.root END AS root,
            part.is_confusing OR coalesce(up.is_assumed, FALSE) AS is_assumed,
            coalesce(
                lag(part.end_time) OVER (PARTITION BY part.parent ORDER BY part.start_time),
                above.start_time
            ) AS free_from
        FROM part
        LEFT JOIN climbed AS up ON up.node = part.parent
        LEFT JOIN part AS above ON above.node = part.parent
        WHERE part.is_waited_for AND (part.parent IS NULL OR up.root IS NOT NULL)
    )
    SELECT
        placed.node,
        placed.parent,
        plain_tree.root,
        placed.start_time,
        placed.end_time,
        coalesce(placed.covered_until, placed.parent_start) AS free_from,
        TRUE AS is_waited_for,
        FALSE AS is_assumed
    FROM placed
    JOIN plain_tree USING (tree)
    UNION ALL
    SELECT
        part.node,
        part.parent,
        critical.root,
        part.start_time,
        part.end_time,
        critical.free_from,
        part.is_waited_for,
        coalesce(critical.is_assumed, FALSE)
    FROM part
    LEFT JOIN critical USING (node)
);

COMMENT ON MACRO TABLE _waits_of IS 'One row is a span (node: its rowid in spans) cut to what its ancestors hold of it, and whether its root waited for it: root is null where not, is_waited_for null where nobody could.';

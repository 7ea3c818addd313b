-- One row is a span and what its length means to the end of its root; of the traces in the list
-- `ids`, or of all when it is null. `scope`, `outliving` and `overlap` as of _waits_of.
--
-- Both are about one span alone, everything beside it where it was. Drag is how much shorter a span on
-- the path could have been before a sibling would have been waited for in its place, and no more than
-- what its ancestors have to give. Slack is how much longer a span could have been before it would
-- have been waited for: until the end of the sibling that was, and as long again as its ancestors
-- could have been. Spans outside their parents are left out. With the `scope` 'rollout' a rollout takes
-- the place of its root.
CREATE MACRO slack_of(ids, scope := 'trace', outliving := 'clip', overlap := 0) AS TABLE (
    WITH RECURSIVE
    wait AS MATERIALIZED (
        SELECT
            node,
            parent,
            start_time,
            end_time,
            is_waited_for
        FROM _waits_of(ids, scope, outliving, overlap)
    ),
    own_drag AS (
        SELECT
            node,
            end_time - CASE
                WHEN parent IS NULL THEN start_time
                ELSE greatest(
                    start_time,
                    lag(end_time, 1, start_time) OVER (
                        PARTITION BY parent
                        ORDER BY end_time, is_waited_for, start_time DESC, node
                    )
                )
            END AS drag_ns
        FROM wait
        WHERE is_waited_for IS NOT NULL
    ),
    own_slack AS (
        SELECT
            beside.node,
            waited.end_time - beside.end_time AS slack_ns
        FROM wait AS beside
        ASOF JOIN (
            SELECT
                parent,
                end_time
            FROM wait
            WHERE is_waited_for
        ) AS waited
            ON waited.parent = beside.parent
            AND waited.end_time >= beside.end_time
        WHERE NOT beside.is_waited_for
    ),
    own AS MATERIALIZED (
        SELECT
            wait.node,
            wait.parent,
            CASE WHEN wait.is_waited_for THEN own_drag.drag_ns ELSE 0 END AS drag_ns,
            CASE
                WHEN wait.is_waited_for THEN 0
                WHEN NOT wait.is_waited_for THEN own_slack.slack_ns
            END AS slack_ns,
            coalesce(wait.is_waited_for, FALSE) AS is_critical
        FROM wait
        LEFT JOIN own_drag USING (node)
        LEFT JOIN own_slack USING (node)
    ),
    climb AS (
        SELECT
            node,
            parent AS ancestor,
            drag_ns,
            slack_ns,
            is_critical,
            count(parent) OVER () AS climbing
        FROM own
        UNION ALL
        SELECT
            lower.node,
            upper.ancestor,
            least(lower.drag_ns, upper.drag_ns),
            CASE WHEN upper.node IS NULL THEN lower.slack_ns ELSE lower.slack_ns + upper.slack_ns END,
            lower.is_critical AND coalesce(upper.is_critical, TRUE),
            count(upper.ancestor) OVER ()
        FROM climb AS lower
        LEFT JOIN climb AS upper ON upper.node = lower.ancestor
        WHERE lower.climbing > 0
    ),
    top AS (
        SELECT *
        FROM climb
        WHERE climbing = 0
    )
    SELECT
        top.node,
        span.trace_id,
        span.span_id,
        span.occurrence,
        top.is_critical AS critical,
        top.drag_ns,
        top.slack_ns
    FROM top
    JOIN spans AS span ON span.rowid = top.node
);

COMMENT ON MACRO TABLE slack_of IS 'One row is a span and what its length means to the end of its root: drag_ns is how much shorter it could have been before another span would have been waited for, slack_ns how much longer before it would have been; of the traces in the list `ids`, or of all when it is null.';

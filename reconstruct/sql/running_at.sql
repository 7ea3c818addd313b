-- One row is a span that ran at an instant, ns since 1970: it had begun, had not ended, and its
-- process was not gone. With null: when the logs end.
--
-- What is below it and above it is asked of the tree (_edges). Its path names no more than the 15
-- nearest of its ancestors, so that deep trees do not make texts that grow with the square.
CREATE MACRO running_at(instant) AS TABLE (
    WITH RECURSIVE
    running AS MATERIALIZED (
        SELECT
            work.node,
            edge.parent,
            edge.trace_id,
            coalesce(instant, work.seen_until_unix_nano) - edge.start_time_unix_nano AS running_ns
        FROM _running_at(instant) AS work
        JOIN _edges AS edge ON edge.node = work.node
        WHERE work.ending = 'open'
    ),
    relative AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            span.name,
            span.service_name
        FROM _edges AS edge
        SEMI JOIN running USING (trace_id)
        JOIN spans AS span ON span.rowid = edge.node
    ),
    ascent AS (
        SELECT
            node,
            node AS ancestor,
            0 AS steps
        FROM running
        UNION ALL
        SELECT
            lower.node,
            above.parent,
            lower.steps + 1
        FROM ascent AS lower
        JOIN relative AS above ON above.node = lower.ancestor
        WHERE above.parent IS NOT NULL AND lower.steps < 16
    ),
    -- The name of a service stands once, after the last of its spans in a row.
    word AS (
        SELECT
            ascent.node,
            ascent.steps,
            CASE
                WHEN ascent.steps = 16 THEN '…'
                WHEN row_number() OVER above = 1
                    OR lag(relative.service_name) OVER above
                        IS DISTINCT FROM relative.service_name
                    THEN _span_label(relative.name, relative.service_name)
                ELSE relative.name
            END AS text
        FROM ascent
        JOIN relative ON relative.node = ascent.ancestor
        WINDOW above AS (PARTITION BY ascent.node ORDER BY ascent.steps)
    ),
    path AS (
        SELECT
            node,
            string_agg(text, ' → ' ORDER BY steps DESC) AS path
        FROM word
        GROUP BY node
    )
    SELECT
        span.trace_id,
        span.span_id,
        span.occurrence,
        span.name,
        span.kind,
        span.service_name,
        span.instance,
        span.run_id,
        member.rollout_id,
        span.start_time_unix_nano,
        running.running_ns,
        running.node NOT IN (
            SELECT parent
            FROM running
            WHERE parent IS NOT NULL
        ) AS is_innermost,
        path.path,
        running.node
    FROM running
    JOIN path USING (node)
    JOIN spans AS span ON span.rowid = running.node
    LEFT JOIN _rollout_spans AS member ON member.node = running.node
);

COMMENT ON MACRO TABLE running_at IS 'One row is a span that ran at an instant, ns since 1970 (null: when the logs end), for how long by then (running_ns), whether nothing below it ran (is_innermost), and the spans above it in words (path).';

-- One row is a span and the row of its parent, so that trees need no more look-ups.
--
-- Ancestors are found by doubling (parent, then its parent's parent, then 4, 8 … steps up), so a
-- chain of 10,000 spans takes 14 rounds. What still has an ancestor after more steps than the
-- trace has spans is on a cycle or under one; each cycle is cut above its earliest span. A cycle has
-- a parent that starts no earlier than its child, so other traces need not be climbed.
--
-- Rows are in order of their trace, so that questions on one trace read no more than a few blocks.
-- Times are here so that self times need no look-ups either.
CREATE TABLE _edges AS
WITH RECURSIVE
edge AS MATERIALIZED (
    SELECT
        child.rowid AS node,
        parent.rowid AS parent,
        child.trace_id,
        child.parent_span_id IS NOT NULL AS has_parent_id,
        child.start_time_unix_nano,
        child.end_time_unix_nano,
        child.open_ns,
        parent.start_time_unix_nano >= child.start_time_unix_nano AS is_backward
    FROM spans AS child
    LEFT JOIN spans AS parent
        ON parent.trace_id = child.trace_id
        AND parent.span_id = child.parent_span_id
        AND parent.occurrence = 1
),
link AS MATERIALIZED (
    SELECT
        node,
        parent
    FROM edge
    SEMI JOIN (
        SELECT trace_id
        FROM edge
        WHERE is_backward
    ) AS suspect USING (trace_id)
    WHERE parent IS NOT NULL
),
rounds AS (
    SELECT ceil(log2(max(span_count) + 1))::INTEGER AS enough
    FROM traces
),
climb AS (
    SELECT
        node,
        parent AS ancestor,
        0 AS round
    FROM link
    UNION ALL
    SELECT
        lower.node,
        upper.ancestor,
        lower.round + 1
    FROM climb AS lower
    JOIN climb AS upper ON upper.node = lower.ancestor
    WHERE lower.round < (SELECT enough FROM rounds)
),
cycle_node AS MATERIALIZED (
    SELECT DISTINCT
        climb.ancestor AS node
    FROM climb
    WHERE climb.round = (SELECT enough FROM rounds)
),
cycle_member AS MATERIALIZED (
    SELECT
        link.node,
        link.parent,
        row_number() OVER (ORDER BY span.start_time_unix_nano, span.span_id, link.node) AS rank
    FROM cycle_node
    JOIN link USING (node)
    JOIN spans AS span ON span.rowid = link.node
),
circle AS (
    SELECT
        node,
        parent AS ancestor,
        rank AS first_rank,
        0 AS round
    FROM cycle_member
    UNION ALL
    SELECT
        lower.node,
        upper.ancestor,
        least(lower.first_rank, upper.first_rank),
        lower.round + 1
    FROM circle AS lower
    JOIN circle AS upper ON upper.node = lower.ancestor
    WHERE lower.round < (SELECT enough FROM rounds)
),
cut AS (
    SELECT DISTINCT
        member.node
    FROM cycle_member AS member
    JOIN circle
        ON circle.node = member.node
        AND circle.first_rank = member.rank
    WHERE circle.round = (SELECT enough FROM rounds)
)
SELECT
    edge.node,
    CASE WHEN cut.node IS NULL THEN edge.parent END AS parent,
    edge.trace_id,
    edge.start_time_unix_nano,
    edge.end_time_unix_nano,
    edge.open_ns,
    edge.has_parent_id AND edge.parent IS NULL AS orphan,
    cycle_node.node IS NOT NULL AS cycle,
    cut.node IS NOT NULL AS is_cut
FROM edge
LEFT JOIN cycle_node ON cycle_node.node = edge.node
LEFT JOIN cut ON cut.node = edge.node
ORDER BY edge.trace_id;

COMMENT ON TABLE _edges IS 'One row is a span (node: its rowid in spans) and the row of its parent, cycles cut.';

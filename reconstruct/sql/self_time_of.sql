-- One row is a finished span and the time in it that none of its children covers; of the traces in
-- the list `ids`, or of all when it is null.
--
-- Children are clipped to their parent; where they overlap, time counts once. A child that is
-- unfinished covers what was seen of it.
CREATE MACRO self_time_of(ids) AS TABLE (
    WITH
    edge AS (
        SELECT
            node,
            parent,
            trace_id,
            span_id,
            occurrence
        FROM _edges
        WHERE ids IS NULL OR trace_id IN (SELECT unnest(ids))
    ),
    child AS (
        SELECT
            edge.trace_id,
            edge.parent,
            greatest(span.start_time_unix_nano, parent.start_time_unix_nano) AS start_time,
            least(
                coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns),
                parent.end_time_unix_nano
            ) AS end_time
        FROM edge
        JOIN spans AS span ON span.rowid = edge.node
        JOIN spans AS parent ON parent.rowid = edge.parent
        WHERE parent.end_time_unix_nano IS NOT NULL
    ),
    stretch AS (
        SELECT
            trace_id,
            parent,
            start_time,
            end_time,
            max(end_time) OVER (
                PARTITION BY trace_id, parent
                ORDER BY start_time, end_time
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS covered_until
        FROM child
        WHERE end_time > start_time
    ),
    covered AS (
        SELECT
            trace_id,
            parent,
            sum(
                greatest(0, end_time - greatest(start_time, coalesce(covered_until, start_time)))
            )::BIGINT AS covered_ns
        FROM stretch
        GROUP BY trace_id, parent
    )
    SELECT
        edge.trace_id,
        edge.span_id,
        edge.occurrence,
        span.duration_ns - coalesce(covered.covered_ns, 0) AS self_time_ns
    FROM edge
    JOIN spans AS span ON span.rowid = edge.node
    LEFT JOIN covered ON covered.parent = edge.node AND covered.trace_id = edge.trace_id
    WHERE span.duration_ns IS NOT NULL
);

COMMENT ON MACRO TABLE self_time_of IS 'One row is a finished span and the time in it that none of its children covers; of the traces in the list `ids`, or of all when it is null.';

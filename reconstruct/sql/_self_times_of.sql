-- One row is a finished span (node: its rowid in spans) and its self time; of the traces in the list
-- `ids`, or of all when it is null.
--
-- Children are clipped to their parent; where they overlap, time counts once. A child that is
-- unfinished covers what was seen of it.
CREATE MACRO _self_times_of(ids) AS TABLE (
    WITH
    edge AS (
        SELECT
            node,
            parent,
            start_time_unix_nano,
            end_time_unix_nano,
            open_ns
        FROM _edges
        WHERE ids IS NULL OR trace_id IN (SELECT unnest(ids))
    ),
    child AS (
        SELECT
            edge.parent,
            greatest(edge.start_time_unix_nano, parent.start_time_unix_nano) AS start_time,
            least(
                coalesce(edge.end_time_unix_nano, edge.start_time_unix_nano + edge.open_ns),
                parent.end_time_unix_nano
            ) AS end_time
        FROM edge
        JOIN edge AS parent ON parent.node = edge.parent
        WHERE parent.end_time_unix_nano IS NOT NULL
    ),
    stretch AS (
        SELECT
            parent,
            start_time,
            end_time,
            max(end_time) OVER (
                PARTITION BY parent
                ORDER BY start_time, end_time
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS covered_until
        FROM child
        WHERE end_time > start_time
    ),
    covered AS (
        SELECT
            parent,
            sum(
                greatest(0, end_time - greatest(start_time, coalesce(covered_until, start_time)))
            )::BIGINT AS covered_ns
        FROM stretch
        GROUP BY parent
    )
    SELECT
        edge.node,
        edge.end_time_unix_nano - edge.start_time_unix_nano - coalesce(covered.covered_ns, 0)
            AS self_time_ns
    FROM edge
    LEFT JOIN covered ON covered.parent = edge.node
    WHERE edge.end_time_unix_nano IS NOT NULL
);

COMMENT ON MACRO TABLE _self_times_of IS 'One row is a finished span (node: its rowid in spans) and its self time; of the traces in the list `ids`, or of all when it is null.';

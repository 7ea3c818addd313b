-- One row is a finished span (node: its rowid in spans) and its self time; of the traces in the list
-- `ids`, or of all when it is null.
--
-- Children are clipped to their parent; where they overlap, time counts once. A child that is
-- unfinished covers what was seen of it. Detached is what nobody above waits for: a consumer of its
-- producer, and a span that ends after its parent though one process wrote both.
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
    child AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            greatest(edge.start_time_unix_nano, parent.start_time_unix_nano) AS start_time,
            least(
                coalesce(edge.end_time_unix_nano, edge.start_time_unix_nano + edge.open_ns),
                parent.end_time_unix_nano
            ) AS end_time,
            coalesce(edge.end_time_unix_nano, edge.start_time_unix_nano + edge.open_ns)
                > parent.end_time_unix_nano AS is_outliving
        FROM edge
        JOIN edge AS parent ON parent.node = edge.parent
        WHERE parent.end_time_unix_nano IS NOT NULL
    ),
    suspect AS MATERIALIZED (
        SELECT
            node,
            parent,
            is_outliving
        FROM child
        WHERE is_outliving OR node IN (
            SELECT rowid
            FROM _span_lines
            WHERE kind = 'CONSUMER'
        )
    ),
    detached AS MATERIALIZED (
        SELECT
            child.node,
            child.parent
        FROM suspect AS child
        JOIN _span_lines AS line ON line.rowid = child.node
        JOIN _span_lines AS above ON above.rowid = child.parent
        JOIN _owner_instances AS writer ON writer.owner = line.owner
        JOIN _owner_instances AS writer_above ON writer_above.owner = above.owner
        WHERE (child.is_outliving AND writer.instance = writer_above.instance)
            OR (line.kind = 'CONSUMER' AND above.kind = 'PRODUCER')
    ),
    counted AS (
        SELECT
            parent,
            TRUE AS has_detached,
            start_time,
            end_time
        FROM child
        WHERE end_time > start_time
        UNION ALL
        SELECT
            parent,
            FALSE,
            start_time,
            end_time
        FROM child
        WHERE end_time > start_time
            AND parent IN (
                SELECT parent
                FROM detached
            )
            AND node NOT IN (
                SELECT node
                FROM detached
            )
    ),
    stretch AS (
        SELECT
            parent,
            has_detached,
            start_time,
            end_time,
            max(end_time) OVER (
                PARTITION BY parent, has_detached
                ORDER BY start_time, end_time
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS covered_until
        FROM counted
    ),
    covered AS (
        SELECT
            parent,
            sum(
                greatest(0, end_time - greatest(start_time, coalesce(covered_until, start_time)))
            ) FILTER (has_detached)::BIGINT AS by_all_ns,
            sum(
                greatest(0, end_time - greatest(start_time, coalesce(covered_until, start_time)))
            ) FILTER (NOT has_detached)::BIGINT AS by_attached_ns
        FROM stretch
        GROUP BY parent
    )
    SELECT
        edge.node,
        edge.end_time_unix_nano - edge.start_time_unix_nano - coalesce(covered.by_all_ns, 0)
            AS self_time_ns,
        edge.end_time_unix_nano - edge.start_time_unix_nano - coalesce(
            CASE
                WHEN edge.node IN (
                    SELECT parent
                    FROM detached
                ) THEN covered.by_attached_ns
                ELSE covered.by_all_ns
            END,
            0
        ) AS self_excluding_detached_ns
    FROM edge
    LEFT JOIN covered ON covered.parent = edge.node
    WHERE edge.end_time_unix_nano IS NOT NULL
);

COMMENT ON MACRO TABLE _self_times_of IS 'One row is a finished span (node: its rowid in spans) and its self time; of the traces in the list `ids`, or of all when it is null.';

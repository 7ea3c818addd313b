-- One row is a CLIENT span and a SERVER span under it that were timed by different clocks, and how
-- far the server's clock can be ahead; of the traces in the list `ids`, or of all when it is null.
--
-- A call begins before it is served and ends after it: so the server's clock is ahead by no more
-- than its start less the client's start, and by no less than its end less the client's end. Times
-- that are whole µs, ms or s were rounded, so the bounds are that much wider. INTERNAL spans
-- between the two are stepped over, by doubling (see _edges) where there are any.
--
-- A call says nothing of clocks when the server outlived its client: when it took longer, or when
-- the client alone failed, which is how one that gave up looks.
CREATE MACRO _clock_bounds_of(ids) AS TABLE (
    WITH RECURSIVE
    server AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent,
            clock.number AS clock_number,
            line.start_time_unix_nano AS start_time,
            line.end_time_unix_nano AS end_time,
            line.status_code = 'ERROR' AS has_failed
        FROM _edges AS edge
        JOIN _span_lines AS line ON line.rowid = edge.node
        JOIN _owner_clocks AS clock USING (owner)
        WHERE line.kind = 'SERVER'
            AND line.end_time_unix_nano IS NOT NULL
            AND edge.parent IS NOT NULL
            AND (ids IS NULL OR edge.trace_id IN (SELECT unnest(ids)))
            AND (SELECT max(number) > 1 FROM _owner_clocks)
    ),
    above AS MATERIALIZED (
        SELECT
            server.node,
            server.parent,
            line.kind
        FROM server
        JOIN _span_lines AS line ON line.rowid = server.parent
        WHERE line.kind IN ('CLIENT', 'INTERNAL')
    ),
    between_edge AS MATERIALIZED (
        SELECT
            edge.node,
            edge.parent
        FROM _edges AS edge
        JOIN _span_lines AS line ON line.rowid = edge.node
        SEMI JOIN (
            SELECT trace_id
            FROM above
            JOIN _edges USING (node)
            WHERE above.kind = 'INTERNAL'
        ) AS trace ON trace.trace_id = edge.trace_id
        WHERE line.kind = 'INTERNAL'
            AND edge.parent IS NOT NULL
            AND (SELECT bool_or(kind = 'INTERNAL') FROM above)
    ),
    climb AS (
        SELECT
            node,
            parent AS ancestor,
            0 AS round,
            count(*) OVER () AS climbing
        FROM between_edge
        UNION ALL
        SELECT
            lower.node,
            coalesce(upper.ancestor, lower.ancestor),
            lower.round + 1,
            count(upper.node) OVER ()
        FROM climb AS lower
        LEFT JOIN climb AS upper ON upper.node = lower.ancestor
        WHERE lower.climbing > 0
    ),
    caller AS (
        SELECT
            node,
            parent AS client_node
        FROM above
        WHERE kind = 'CLIENT'
        UNION ALL
        SELECT
            above.node,
            arg_max(climb.ancestor, climb.round)
        FROM above
        JOIN climb ON climb.node = above.parent
        WHERE above.kind = 'INTERNAL'
        GROUP BY above.node
    ),
    call AS (
        SELECT
            line.rowid AS client_node,
            server.node AS server_node,
            clock.number AS client_number,
            server.clock_number AS server_number,
            line.start_time_unix_nano AS client_start,
            server.start_time AS server_start,
            server.start_time - line.start_time_unix_nano AS start_gap,
            server.end_time - line.end_time_unix_nano AS end_gap,
            greatest(
                _rounded_to(line.start_time_unix_nano, line.end_time_unix_nano),
                _rounded_to(server.start_time, server.end_time)
            ) - 1 AS rounding,
            line.status_code = 'ERROR' AND server.has_failed IS NOT TRUE AS is_given_up
        FROM caller
        JOIN server USING (node)
        JOIN _span_lines AS line ON line.rowid = caller.client_node
        JOIN _owner_clocks AS clock USING (owner)
        WHERE line.kind = 'CLIENT'
            AND line.end_time_unix_nano IS NOT NULL
            AND clock.number <> server.clock_number
    )
    SELECT
        client_node,
        server_node,
        client_number,
        server_number,
        client_start,
        server_start,
        end_gap - rounding AS lower_ns,
        start_gap + rounding AS upper_ns,
        CASE
            WHEN end_gap - rounding > start_gap + rounding THEN 'outlives'
            WHEN is_given_up THEN 'given up'
        END AS excluded
    FROM call
);

COMMENT ON MACRO TABLE _clock_bounds_of IS 'One row is a CLIENT span and a SERVER span under it that were timed by different clocks, and how far the server''s clock can be ahead; of the traces in the list `ids`, or of all when it is null.';

-- One row is an attempt of a call between processes: the half of its client and the half of its
-- server, or one of them where the other is not in the input.
--
-- Its client half is the CLIENT or PRODUCER span that a span of another process hangs below, at
-- whatever depth of INTERNAL spans; without one it is the parent, and makes a call of its own of each
-- attempt. Its server half is likewise the SERVER or CONSUMER span below INTERNAL ones, else that
-- span of the other process. A client span around another one of its process is no half.
--
-- A client half without a server half called who answered most of the other calls to its address,
-- if any (`answering_owner`). Addresses of those are looked at only if there is something to find.
--
-- INTERNAL spans are climbed by doubling (see _edges), in those traces only where it may matter.
-- Owners stand for processes: the least number of all that are the same instance.
CREATE VIEW _attempts AS
WITH RECURSIVE
process AS MATERIALIZED (
    SELECT
        owner,
        min(owner) OVER (PARTITION BY instance) AS process
    FROM _owner_instances
),
half AS MATERIALIZED (
    SELECT
        edge.node,
        edge.parent,
        edge.trace_id,
        edge.orphan,
        edge.parent IS NULL AND NOT edge.orphan AND NOT edge.is_cut AS is_root,
        process.process,
        line.kind,
        line.status_code = 'ERROR' AS has_failed,
        edge.start_time_unix_nano AS start_time,
        edge.end_time_unix_nano AS end_time
    FROM _edges AS edge
    JOIN _span_lines AS line ON line.rowid = edge.node
    JOIN process ON process.owner = line.owner
),
link AS MATERIALIZED (
    SELECT
        lower.node,
        lower.parent,
        lower.trace_id,
        lower.kind AS lower_kind,
        upper.kind AS upper_kind,
        lower.process IS DISTINCT FROM upper.process AS is_crossing
    FROM half AS lower
    JOIN half AS upper ON upper.node = lower.parent
),
inner_link AS MATERIALIZED (
    SELECT
        node,
        parent
    FROM link
    SEMI JOIN (
        SELECT trace_id
        FROM link
        WHERE lower_kind = 'INTERNAL' AND (is_crossing OR upper_kind IN ('CLIENT', 'PRODUCER'))
    ) AS suspect USING (trace_id)
    WHERE lower_kind = 'INTERNAL' AND NOT is_crossing
),
climb AS (
    SELECT
        node,
        parent AS top,
        count(*) OVER () AS climbing
    FROM inner_link
    UNION ALL
    SELECT
        lower.node,
        coalesce(upper.top, lower.top),
        count(upper.node) OVER ()
    FROM climb AS lower
    LEFT JOIN climb AS upper ON upper.node = lower.top
    WHERE lower.climbing > 0
),
top AS MATERIALIZED (
    SELECT
        node,
        top
    FROM climb
    WHERE climbing = 0
),
crossing AS MATERIALIZED (
    SELECT
        CASE WHEN above.kind IN ('CLIENT', 'PRODUCER') THEN above.node ELSE link.parent END
            AS client_node,
        link.node AS entered_node,
        link.lower_kind = 'INTERNAL' AS is_internal
    FROM link
    LEFT JOIN top ON top.node = link.parent
    LEFT JOIN half AS above ON above.node = top.top
    WHERE link.is_crossing
),
served AS (
    SELECT
        coalesce(top.top, link.parent) AS entered_node,
        link.node AS server_node
    FROM link
    LEFT JOIN top ON top.node = link.parent
    WHERE link.lower_kind IN ('SERVER', 'CONSUMER') AND link.upper_kind = 'INTERNAL'
        AND NOT link.is_crossing
),
pair AS MATERIALIZED (
    SELECT
        crossing.client_node,
        coalesce(served.server_node, crossing.entered_node) AS server_node
    FROM crossing
    LEFT JOIN served
        ON served.entered_node = crossing.entered_node
        AND crossing.is_internal
),
busy_client AS (
    SELECT client_node AS node
    FROM pair
    UNION ALL
    SELECT coalesce(top.top, link.parent)
    FROM link
    LEFT JOIN top ON top.node = link.parent
    WHERE link.lower_kind <> 'INTERNAL' AND NOT link.is_crossing
),
attempt AS MATERIALIZED (
    SELECT
        client.node AS client_node,
        server.node AS server_node,
        client.process AS client_owner,
        server.process AS server_owner,
        CASE
            WHEN client.kind = 'PRODUCER' OR server.kind = 'CONSUMER' THEN 'queue'
            WHEN client.kind = 'CLIENT' OR server.kind = 'SERVER' THEN 'rpc'
            ELSE 'internal'
        END AS kind,
        client.kind IN ('CLIENT', 'PRODUCER') AS has_client_span,
        client.has_failed AS client_failed,
        server.has_failed AS server_failed,
        client.start_time AS client_start_time,
        client.end_time AS client_end_time,
        server.start_time AS server_start_time,
        server.end_time AS server_end_time
    FROM pair
    JOIN half AS client ON client.node = pair.client_node
    JOIN half AS server ON server.node = pair.server_node
),
lone_client AS MATERIALIZED (
    SELECT
        half.node,
        half.process,
        half.has_failed,
        half.start_time,
        half.end_time,
        _peer_address(line.attributes) AS address,
        _peer_database(line.attributes) AS database
    FROM half
    ANTI JOIN busy_client USING (node)
    JOIN _span_lines AS line ON line.rowid = half.node
    WHERE half.kind IN ('CLIENT', 'PRODUCER')
),
answering_process AS (
    SELECT
        _peer_address(line.attributes) AS address,
        attempt.server_owner,
        count(*) AS calls
    FROM attempt
    JOIN _span_lines AS line ON line.rowid = attempt.client_node
    WHERE attempt.kind = 'rpc'
        AND attempt.has_client_span
        AND EXISTS (
            SELECT 1
            FROM lone_client
            WHERE address IS NOT NULL AND database IS NULL
        )
    GROUP BY ALL
),
answering_service AS (
    SELECT
        answering.address,
        owner.service_name,
        min(answering.server_owner) AS server_owner,
        count(*) AS processes,
        sum(answering.calls) AS calls
    FROM answering_process AS answering
    JOIN _owner_instances AS owner ON owner.owner = answering.server_owner
    WHERE answering.address IS NOT NULL
    GROUP BY answering.address, owner.service_name
),
address_book AS (
    SELECT
        address,
        arg_min(server_owner, (-calls, service_name)) AS server_owner,
        sum(processes) = 1 AS is_one_process
    FROM answering_service
    GROUP BY address
)
SELECT
    client_node,
    server_node,
    client_owner,
    server_owner,
    kind,
    has_client_span,
    client_failed,
    server_failed,
    client_start_time,
    client_end_time,
    server_start_time,
    server_end_time,
    NULL::BIGINT AS answering_owner,
    NULL::BOOLEAN AS is_one_process,
    NULL::VARCHAR AS peer
FROM attempt
UNION ALL
SELECT
    lone.node,
    NULL,
    lone.process,
    NULL,
    CASE
        WHEN lone.database IS NOT NULL THEN 'database'
        WHEN book.address IS NOT NULL THEN 'rpc'
        WHEN lone.address IS NOT NULL THEN 'external'
        ELSE 'unpaired'
    END,
    TRUE,
    lone.has_failed,
    NULL,
    lone.start_time,
    lone.end_time,
    NULL,
    NULL,
    book.server_owner,
    book.is_one_process,
    coalesce(lone.address, lone.database)
FROM lone_client AS lone
LEFT JOIN address_book AS book ON book.address = lone.address AND lone.database IS NULL
UNION ALL
SELECT
    NULL,
    node,
    NULL,
    process,
    CASE WHEN is_root THEN 'entry' ELSE 'missing' END,
    FALSE,
    NULL,
    has_failed,
    NULL,
    NULL,
    start_time,
    end_time,
    NULL,
    NULL,
    NULL
FROM half
WHERE kind IN ('SERVER', 'CONSUMER') AND (is_root OR orphan);

COMMENT ON VIEW _attempts IS 'One row is an attempt of a call between processes: the half of its client and the half of its server (nodes: rowids in spans), or one of them where the other is not in the input.';

-- One row is a caller and a callee among services: every call of one kind between them.
--
-- A call is a span and its children in another service, through whatever kinds of span; several
-- children are several attempts. Calls within one service are left out. What has no other half is
-- counted too: `entry` stands for callers outside the fleet, `missing` for callers whose span is
-- not in the input; a call without a server half goes to the service that answers at its address,
-- else to that address, else to `unknown`.
CREATE VIEW service_edges AS
WITH
half AS (
    SELECT
        edge.node,
        edge.parent,
        edge.orphan,
        span.parent_span_id,
        span.kind,
        span.service_name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.duration_ns,
        span.status_code = 'ERROR' AS has_failed,
        _peer_address(span.attributes) AS address,
        _peer_database(span.attributes) AS database
    FROM _edges AS edge
    JOIN spans AS span ON span.rowid = edge.node
),
crossing AS (
    SELECT
        client.node AS client_node,
        client.service_name AS client,
        server.service_name AS server,
        CASE
            WHEN client.kind = 'PRODUCER' OR server.kind = 'CONSUMER' THEN 'queue'
            WHEN client.kind = 'CLIENT' OR server.kind = 'SERVER' THEN 'rpc'
            ELSE 'internal'
        END AS kind,
        client.has_failed AS client_failed,
        server.has_failed AS server_failed,
        client.duration_ns AS client_ns,
        server.duration_ns AS server_ns,
        server.start_time_unix_nano - client.end_time_unix_nano AS queue_ns,
        client.address
    FROM half AS server
    JOIN half AS client ON client.node = server.parent
    WHERE client.service_name IS DISTINCT FROM server.service_name
),
paired_call AS (
    SELECT
        client_node,
        client,
        server,
        kind,
        any_value(client_failed) AS has_failed,
        count(*) AS attempts,
        count(*) FILTER (server_failed) AS failed_attempts,
        FALSE AS is_unpaired,
        any_value(client_ns) AS duration_ns,
        CASE
            WHEN kind = 'queue' THEN min(queue_ns)
            ELSE any_value(client_ns) - sum(server_ns)::BIGINT
        END AS gap_ns,
        any_value(address) AS address
    FROM crossing
    GROUP BY client_node, client, server, kind
),
address_book AS (
    SELECT
        address,
        mode(server ORDER BY server) AS service
    FROM paired_call
    WHERE address IS NOT NULL AND kind = 'rpc'
    GROUP BY address
),
lone_client AS (
    SELECT
        client.node AS client_node,
        client.service_name AS client,
        client.address,
        client.database,
        client.has_failed,
        client.duration_ns
    FROM half AS client
    WHERE client.kind IN ('CLIENT', 'PRODUCER')
        AND client.node NOT IN (
            SELECT parent
            FROM half
            WHERE parent IS NOT NULL AND kind IN ('CLIENT', 'PRODUCER', 'SERVER', 'CONSUMER')
        )
        AND client.node NOT IN (SELECT client_node FROM paired_call)
),
call AS (
    SELECT
        client,
        server,
        kind,
        has_failed,
        attempts,
        failed_attempts,
        is_unpaired,
        duration_ns,
        gap_ns
    FROM paired_call
    UNION ALL
    SELECT
        lone.client,
        coalesce(book.service, lone.address, lone.database, 'unknown'),
        CASE
            WHEN book.service IS NOT NULL THEN 'rpc'
            WHEN lone.database IS NOT NULL THEN 'database'
            WHEN lone.address IS NOT NULL THEN 'external'
            ELSE 'unpaired'
        END,
        lone.has_failed,
        0,
        0,
        TRUE,
        lone.duration_ns,
        NULL
    FROM lone_client AS lone
    LEFT JOIN address_book AS book ON book.address = lone.address AND lone.database IS NULL
    WHERE lone.client IS DISTINCT FROM book.service
    UNION ALL
    SELECT
        CASE WHEN parent_span_id IS NULL THEN 'entry' ELSE 'missing' END,
        service_name,
        CASE WHEN parent_span_id IS NULL THEN 'entry' ELSE 'missing' END,
        has_failed,
        1,
        CASE WHEN has_failed THEN 1 ELSE 0 END,
        parent_span_id IS NOT NULL,
        duration_ns,
        NULL
    FROM half
    WHERE kind IN ('SERVER', 'CONSUMER') AND (parent_span_id IS NULL OR orphan)
)
SELECT
    client,
    server,
    kind,
    count(*) AS calls,
    count(*) FILTER (has_failed) AS failed_calls,
    sum(attempts)::BIGINT AS attempts,
    sum(failed_attempts)::BIGINT AS failed_attempts,
    count(*) FILTER (is_unpaired) AS unpaired_calls,
    quantile_disc(duration_ns, 0.5) AS duration_p50_ns,
    quantile_disc(duration_ns, 0.95) AS duration_p95_ns,
    quantile_disc(duration_ns, 0.99) AS duration_p99_ns,
    quantile_disc(gap_ns, 0.5) AS gap_p50_ns,
    quantile_disc(gap_ns, 0.95) AS gap_p95_ns
FROM call
GROUP BY client, server, kind;

COMMENT ON VIEW service_edges IS 'One row is a caller and a callee among services: every call of one kind between them.';
COMMENT ON COLUMN service_edges.client IS 'service.name of the caller; entry: outside the fleet; missing: its span is not in the input.';
COMMENT ON COLUMN service_edges.server IS 'service.name of the callee, else its address, else unknown.';
COMMENT ON COLUMN service_edges.kind IS 'rpc, queue, internal (a parent in another service, no client span), database, external (an address that nobody here answers at), unpaired (no address either), entry, missing.';
COMMENT ON COLUMN service_edges.calls IS 'Calls: client spans, or server spans where there is no client.';
COMMENT ON COLUMN service_edges.failed_calls IS 'Calls whose client span has status ERROR.';
COMMENT ON COLUMN service_edges.attempts IS 'Server spans; more than calls when requests were sent again.';
COMMENT ON COLUMN service_edges.failed_attempts IS 'Server spans with status ERROR.';
COMMENT ON COLUMN service_edges.unpaired_calls IS 'Calls of which only one half is in the input.';
COMMENT ON COLUMN service_edges.duration_p50_ns IS 'Median duration of the finished calls, ns.';
COMMENT ON COLUMN service_edges.duration_p95_ns IS '95 % of the finished calls are at most this long, ns.';
COMMENT ON COLUMN service_edges.duration_p99_ns IS '99 % of the finished calls are at most this long, ns.';
COMMENT ON COLUMN service_edges.gap_p50_ns IS 'Median of client less server durations, ns: network and waiting; of a queue, consumer start less producer end. Negative when clocks differ.';
COMMENT ON COLUMN service_edges.gap_p95_ns IS '95 % of these gaps are at most this long, ns.';

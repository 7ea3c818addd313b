-- One row is a caller and a callee, which are services or, `by_instance`, processes: every call of
-- one kind between them. Of the traces in the list `ids`, or of all when it is null.
--
-- What several attempts of a call cover counts once; the rest of the call is its gap.
CREATE MACRO _call_edges(by_instance, ids) AS TABLE (
    WITH
    side AS MATERIALIZED (
        SELECT
            owner,
            service_name,
            CASE WHEN by_instance THEN instance END AS instance,
            min(owner) OVER (
                PARTITION BY service_name, CASE WHEN by_instance THEN instance END
            ) AS side
        FROM _owner_instances
    ),
    attempt AS MATERIALIZED (
        SELECT
            attempt.client_node,
            attempt.server_node,
            client.side AS client,
            server.side AS server,
            attempt.kind,
            attempt.has_client_span,
            attempt.client_failed,
            attempt.server_failed,
            attempt.client_start_time,
            attempt.client_end_time,
            attempt.server_start_time,
            attempt.server_end_time,
            attempt.answering_owner,
            attempt.is_one_process,
            attempt.peer
        FROM _attempts AS attempt
        LEFT JOIN side AS client ON client.owner = attempt.client_owner
        LEFT JOIN side AS server ON server.owner = attempt.server_owner
        WHERE ids IS NULL
            OR coalesce(attempt.client_node, attempt.server_node) IN (
                SELECT node
                FROM _edges
                WHERE trace_id IN (SELECT unnest(ids))
            )
    ),
    repeated AS MATERIALIZED (
        SELECT client_node
        FROM attempt
        WHERE has_client_span
        GROUP BY client_node
        HAVING count(*) > 1
    ),
    stretch AS (
        SELECT
            attempt.*,
            max(server_end_time) OVER (
                PARTITION BY client_node, server
                ORDER BY server_start_time, server_end_time
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS covered_until
        FROM attempt
        SEMI JOIN repeated USING (client_node)
    ),
    repeated_call AS (
        SELECT
            any_value(client) AS client,
            server,
            min(kind) AS kind,
            any_value(client_failed) AS has_failed,
            count(*) AS attempts,
            count(*) FILTER (server_failed) AS failed_attempts,
            any_value(client_end_time - client_start_time) AS duration_ns,
            CASE
                WHEN min(kind) = 'queue' THEN min(server_start_time - client_end_time)
                WHEN count(server_end_time) = count(*)
                    THEN any_value(client_end_time - client_start_time) - sum(
                        greatest(
                            0,
                            server_end_time - greatest(
                                server_start_time,
                                coalesce(covered_until, server_start_time)
                            )
                        )
                    )::BIGINT
            END AS gap_ns
        FROM stretch
        GROUP BY client_node, server
    ),
    call AS (
        SELECT
            client,
            server,
            NULL AS peer,
            kind,
            has_failed,
            attempts,
            failed_attempts,
            FALSE AS is_unpaired,
            duration_ns,
            gap_ns
        FROM repeated_call
        WHERE client <> server
        UNION ALL
        SELECT
            client,
            server,
            NULL,
            kind,
            client_failed,
            1,
            server_failed::BIGINT,
            FALSE,
            client_end_time - client_start_time,
            CASE
                WHEN kind = 'queue' THEN server_start_time - client_end_time
                ELSE client_end_time - client_start_time - (server_end_time - server_start_time)
            END
        FROM attempt
        ANTI JOIN repeated USING (client_node)
        WHERE has_client_span AND server_node IS NOT NULL AND client <> server
        UNION ALL
        SELECT
            client,
            server,
            NULL,
            kind,
            server_failed,
            1,
            server_failed::BIGINT,
            kind = 'missing',
            server_end_time - server_start_time,
            NULL
        FROM attempt
        WHERE server_node IS NOT NULL AND NOT has_client_span AND client IS DISTINCT FROM server
        UNION ALL
        SELECT
            attempt.client,
            answering.side,
            CASE
                WHEN answering.side IS NULL
                    THEN coalesce(service.service_name, attempt.peer, 'unknown')
            END,
            attempt.kind,
            attempt.client_failed,
            0,
            0,
            TRUE,
            attempt.client_end_time - attempt.client_start_time,
            NULL
        FROM attempt
        LEFT JOIN side AS service ON service.owner = attempt.answering_owner
        LEFT JOIN side AS answering
            ON answering.owner = attempt.answering_owner
            AND (attempt.is_one_process OR NOT by_instance)
        WHERE attempt.server_node IS NULL AND attempt.client IS DISTINCT FROM answering.side
    ),
    edge AS (
        SELECT
            client,
            server,
            peer,
            kind,
            count(*) AS calls,
            count(*) FILTER (has_failed) AS failed_calls,
            sum(attempts)::BIGINT AS attempts,
            sum(failed_attempts)::BIGINT AS failed_attempts,
            count(*) FILTER (is_unpaired) AS unpaired_calls,
            count(*) - count(duration_ns) AS unfinished_calls,
            count(*) FILTER (gap_ns < 0) AS negative_gaps,
            quantile_disc(duration_ns, [0.5, 0.95, 0.99]) AS durations,
            quantile_disc(gap_ns, [0.5, 0.95]) AS gaps
        FROM call
        GROUP BY client, server, peer, kind
    )
    SELECT
        CASE WHEN edge.kind IN ('entry', 'missing') THEN edge.kind ELSE client.service_name END
            AS client,
        client.instance AS client_instance,
        coalesce(edge.peer, server.service_name) AS server,
        server.instance AS server_instance,
        edge.kind,
        edge.calls,
        edge.failed_calls,
        edge.attempts,
        edge.failed_attempts,
        edge.unpaired_calls,
        edge.durations[1] AS duration_p50_ns,
        edge.durations[2] AS duration_p95_ns,
        edge.durations[3] AS duration_p99_ns,
        edge.gaps[1] AS gap_p50_ns,
        edge.gaps[2] AS gap_p95_ns,
        edge.unfinished_calls,
        edge.negative_gaps
    FROM edge
    LEFT JOIN side AS client ON client.owner = edge.client
    LEFT JOIN side AS server ON server.owner = edge.server
);

COMMENT ON MACRO TABLE _call_edges IS 'One row is a caller and a callee, which are services or, `by_instance`, processes: every call of one kind between them; of the traces in the list `ids`, or of all when it is null.';

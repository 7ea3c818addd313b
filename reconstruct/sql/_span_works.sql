-- One row is a span (node: its rowid in spans), what kind of work it is, and what its own time is.
--
-- What a span does not say of itself is found above it, by doubling (see _edges), up to the nearest
-- agent, with which a rollout's own work begins anew. `is_served` is what a server of models, tools
-- or verifications does itself: the calls that it makes are its own work.
--
-- Any other CLIENT span with the server's half of the call below it has own time of three kinds:
-- until the first half begins, the tries that failed from there on, and the rest. Tries that no
-- server saw came before the first half, or after the last one when that failed. Without any half
-- the callee is told by the path that was asked for, else by a word in the span's name.
CREATE VIEW _span_works AS
WITH RECURSIVE
known AS MATERIALIZED (
    SELECT
        edge.node,
        edge.parent,
        span.kind,
        span.instance,
        span.start_time_unix_nano AS start_time,
        coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns) AS end_time,
        span.status_code IS NOT DISTINCT FROM 'ERROR' OR span.state <> 'finished' AS has_failed,
        CASE
            WHEN span.kind = 'CLIENT'
                AND contains(span.attributes::VARCHAR, '"http.request.resend_count"')
                THEN coalesce(
                    TRY_CAST(span.attributes->>'http.request.resend_count' AS INTEGER),
                    0
                )
            ELSE 0
        END AS resends,
        _work_of(
            span.name,
            span.kind,
            span.server_type,
            span.service_name,
            span.attributes,
            edge.parent IS NULL
        ) AS mark,
        coalesce(
            mark NOT IN ('agent', 'unaccounted') AND (
                mark = 'sandbox'
                OR span.kind = 'SERVER'
                OR span.server_type IN ('responses_api_models', 'resources_servers')
            ),
            FALSE
        ) AS is_serving
    FROM _edges AS edge
    JOIN spans AS span ON span.rowid = edge.node
),
climb AS (
    SELECT
        child.node,
        CASE WHEN above.mark IS DISTINCT FROM 'agent' THEN above.parent END AS ancestor,
        _work_within(nullif(above.mark, 'agent'), child.mark) AS work,
        child.is_serving OR coalesce(above.is_serving, FALSE) AS is_served,
        count(CASE WHEN above.mark IS DISTINCT FROM 'agent' THEN above.parent END) OVER ()
            AS climbing
    FROM known AS child
    LEFT JOIN known AS above ON above.node = child.parent
    WHERE child.mark IS DISTINCT FROM 'agent'
    UNION ALL
    SELECT
        lower.node,
        upper.ancestor,
        _work_within(upper.work, lower.work),
        lower.is_served OR coalesce(upper.is_served, FALSE),
        count(upper.ancestor) OVER ()
    FROM climb AS lower
    LEFT JOIN climb AS upper ON upper.node = lower.ancestor
    WHERE lower.climbing > 0
),
worked AS MATERIALIZED (
    SELECT
        known.node,
        known.parent,
        known.kind,
        known.instance,
        known.start_time,
        known.end_time,
        known.has_failed,
        known.resends,
        coalesce(climb.work, 'agent') AS work,
        coalesce(climb.is_served, FALSE) AS is_served
    FROM known
    LEFT JOIN climb ON climb.node = known.node AND climb.climbing = 0
),
call AS (
    SELECT
        client.node,
        count(*) AS attempts,
        min(server.start_time) AS first_time,
        arg_min(server.instance, (server.start_time, server.instance)) AS first_instance,
        max(server.start_time) AS last_time,
        count(*) FILTER (server.has_failed) AS failed_halves,
        max((server.start_time, server.has_failed))[2] AS has_last_failed
    FROM worked AS client
    JOIN worked AS server ON server.parent = client.node
    WHERE client.kind = 'CLIENT'
        AND NOT client.is_served
        AND (server.kind = 'SERVER' OR server.instance IS DISTINCT FROM client.instance)
    GROUP BY client.node
),
lone_call AS (
    SELECT
        client.node,
        _work_of_callee(span.name, span.attributes) AS callee_work
    FROM worked AS client
    JOIN spans AS span ON span.rowid = client.node
    WHERE client.kind = 'CLIENT'
        AND client.work = 'agent'
        AND client.node NOT IN (
            SELECT parent
            FROM worked
            WHERE parent IS NOT NULL AND kind <> 'INTERNAL'
        )
)
SELECT
    worked.node,
    worked.instance,
    worked.work,
    CASE
        WHEN call.node IS NOT NULL THEN 'client_overhead'
        WHEN lone_call.node IS NOT NULL AND worked.resends > 0 THEN 'retry'
        ELSE coalesce(lone_call.callee_work, worked.work)
    END AS own_work,
    call.first_time AS first_half_unix_nano,
    call.first_instance AS first_half_instance,
    CASE
        WHEN worked.resends >= call.attempts AND call.has_last_failed THEN worked.end_time
        WHEN worked.resends > 0 OR call.failed_halves > call.has_last_failed::BIGINT
            THEN call.last_time
    END AS tried_until_unix_nano,
    worked.resends >= call.attempts AND NOT call.has_last_failed AS is_tried_before,
    greatest(
        worked.resends,
        CASE
            WHEN call.failed_halves > call.has_last_failed::BIGINT THEN call.attempts - 1
            ELSE 0
        END
    ) AS retries,
    coalesce(lone_call.callee_work, worked.work) AS call_work,
    CASE
        WHEN call_work IN ('agent', 'unaccounted')
            OR above.work NOT IN ('agent', 'unaccounted')
            THEN NULL
        WHEN above.kind = 'CLIENT' AND worked.kind <> 'CLIENT' THEN above.node
        ELSE worked.node
    END AS call_node
FROM worked
LEFT JOIN call USING (node)
LEFT JOIN lone_call USING (node)
LEFT JOIN worked AS above ON above.node = worked.parent;

COMMENT ON VIEW _span_works IS 'One row is a span (node: its rowid in spans), what kind of work it is, and what its own time is; of a call also when and where its first half on the other side began and until when it was tried in vain, of the outermost span of a kind the call (call_node) that it is or belongs to.';

-- One row is a span that began a trace of its own, though what called it was in another one.
--
-- It is a SERVER or CONSUMER span without a parent, and one of the first four is true, or another
-- span without one, and the second is:
-- 1. it came with a traceparent header;
-- 2. a parent is proposed for it (join_proposals);
-- 3. other traces of the same rollout exist, none of them below it, but none was running then: told
--    as a note when its service is never called otherwise, since its caller may write no spans;
-- 4. it is no GET, HEAD or OPTIONS, and its service is otherwise called with a trace context.
CREATE VIEW _finding_split_trace AS
WITH
proposal AS MATERIALIZED (
    SELECT
        rowid AS node,
        kind,
        trace_id,
        parent_trace_id,
        parent_rowid AS caller,
        score,
        grounds
    FROM join_proposals
    WHERE kind <> 'id'
),
request AS MATERIALIZED (
    SELECT
        node,
        trace_id,
        service_name,
        run_id,
        rollout_id,
        method,
        traceparent,
        sent
    FROM _lone_requests
),
other_trace AS (
    SELECT
        request.node,
        count(*) AS traces
    FROM request
    JOIN _rollout_traces AS other
        ON other.rollout_id = request.rollout_id
        AND other.run_id IS NOT DISTINCT FROM request.run_id
        AND other.trace_id <> request.trace_id
    ANTI JOIN proposal AS below
        ON below.trace_id = other.trace_id
        AND below.parent_trace_id = request.trace_id
    GROUP BY request.node
),
usual_caller AS (
    SELECT
        server,
        arg_max(client, (calls, client)) AS client
    FROM service_edges
    WHERE kind IN ('rpc', 'queue')
    GROUP BY server
),
calling AS (
    SELECT DISTINCT
        service_name,
        run_id
    FROM spans
    WHERE kind IN ('CLIENT', 'PRODUCER')
),
suspect AS MATERIALIZED (
    SELECT
        request.node,
        request.trace_id,
        request.method,
        request.traceparent,
        request.sent,
        proposal.kind,
        proposal.caller,
        proposal.score,
        proposal.grounds,
        usual.client AS usual_caller,
        coalesce(other_trace.traces, 0) AS other_traces
    FROM request
    LEFT JOIN proposal USING (node)
    LEFT JOIN other_trace USING (node)
    LEFT JOIN usual_caller AS usual ON usual.server = request.service_name
    UNION ALL BY NAME
    SELECT
        node,
        kind,
        caller,
        score,
        grounds,
        0 AS other_traces
    FROM proposal
    WHERE kind IN ('unserved', 'process')
),
caller AS MATERIALIZED (
    SELECT
        rowid AS node,
        trace_id,
        span_id,
        name,
        service_name,
        run_id,
        file || ':' || line AS place
    FROM spans
    WHERE rowid IN (
        SELECT caller
        FROM suspect
    )
),
judged AS (
    SELECT
        suspect.node,
        suspect.score,
        suspect.grounds,
        suspect.traceparent,
        suspect.usual_caller,
        suspect.other_traces,
        caller.trace_id AS caller_trace_id,
        caller.span_id AS caller_span_id,
        caller.place AS caller_place,
        caller.name AS caller_name,
        _span_label(caller.name, caller.service_name) AS caller_label,
        coalesce(caller.service_name, suspect.usual_caller) AS caller_service,
        CASE
            WHEN suspect.sent.trace_id <> '' AND NOT _is_zero_id(suspect.sent)
                THEN 'traceparent_ignored'
            WHEN suspect.traceparent IS NOT NULL THEN 'invalid_id'
            WHEN suspect.kind = 'unserved' THEN 'server_group_closed'
            WHEN suspect.kind = 'process' THEN 'context_lost_in_process'
            WHEN json_contains(suspect.grounds, '"a call that nothing answers"')
                THEN 'context_not_extracted'
            WHEN caller.node IS NOT NULL AND calling.service_name IS NULL
                THEN 'client_group_closed'
            WHEN caller.node IS NOT NULL
                OR suspect.other_traces > 0
                OR (
                    coalesce(suspect.method, '') NOT IN ('GET', 'HEAD', 'OPTIONS')
                    AND suspect.usual_caller IS NOT NULL
                ) THEN 'egress_bypassed'
        END AS cause,
        caller.node IS NOT NULL AS has_caller,
        CASE
            WHEN caller.node IS NOT NULL OR suspect.traceparent IS NOT NULL THEN NULL
            WHEN suspect.other_traces > 0 THEN 'other traces of the same rollout exist'
            ELSE 'its service is otherwise called with a trace context'
        END AS weak_ground,
        json_contains(suspect.grounds, '"same rollout"')
            OR json_contains(suspect.grounds, '"same trace"') AS is_certain
    FROM suspect
    LEFT JOIN caller ON caller.node = suspect.caller
    LEFT JOIN calling
        ON calling.service_name = caller.service_name
        AND calling.run_id IS NOT DISTINCT FROM caller.run_id
)
SELECT
    'split_trace' AS code,
    CASE
        WHEN judged.cause = 'context_lost_in_process' AND NOT judged.is_certain THEN 'warning'
        WHEN judged.weak_ground IS NULL THEN 'error'
        WHEN judged.other_traces > 0 AND judged.usual_caller IS NULL THEN 'note'
        ELSE 'warning'
    END AS severity,
    judged.cause,
    CASE
        WHEN judged.cause = 'traceparent_ignored' THEN 1
        WHEN judged.cause = 'invalid_id' THEN 0.95
        WHEN judged.cause = 'client_group_closed' THEN 0.7
        WHEN judged.weak_ground IS NOT NULL THEN 0.5
        WHEN judged.is_certain THEN 0.9
        WHEN judged.cause = 'context_lost_in_process' THEN 0.7
        ELSE 0.8
    END AS confidence,
    root.run_id,
    root.trace_id,
    root.span_id,
    root.file,
    root.line,
    CASE
        WHEN judged.cause = 'context_lost_in_process' THEN judged.caller_name
        ELSE coalesce(judged.caller_service, 'unknown')
    END || ' -> ' || _span_label(root.name, root.service_name) AS place,
    _span_label(root.name, root.service_name) || CASE
        WHEN root.trace_id = judged.caller_trace_id THEN ' has no parent'
        ELSE ' began a trace of its own'
    END
        || coalesce(', rollout ' || root.rollout_id, '')
        || CASE
            WHEN judged.cause = 'context_lost_in_process'
                THEN ' while its process was in ' || judged.caller_label || ', trace '
                    || judged.caller_trace_id || ' at ' || judged.caller_place
            WHEN judged.has_caller
                THEN '; its caller is ' || judged.caller_label || ', trace '
                    || judged.caller_trace_id || ' at ' || judged.caller_place
            WHEN judged.traceparent IS NOT NULL
                THEN '; it came with traceparent ' || judged.traceparent
            ELSE '; ' || judged.weak_ground
        END AS message,
    CASE judged.cause
        WHEN 'traceparent_ignored'
            THEN coalesce(root.service_name, 'it')
                || ' was sent a trace context and did not use it: install its ingress, and open its span group server'
        WHEN 'invalid_id'
            THEN 'its traceparent header is none: whatever called '
                || coalesce(root.service_name, 'it') || ' must send 00-<32 hex digits>-<16>-<2>, not all zeros'
        WHEN 'server_group_closed'
            THEN coalesce(root.service_name, 'it')
                || ' writes no span of a request: open its span group server, or install its ingress'
        WHEN 'context_lost_in_process'
            THEN 'its context was lost on the way to another thread or task: '
                || 'use asyncio.to_thread or contextvars.copy_context().run, or give the span a link'
        ELSE 'the trace context was not passed from ' || coalesce(judged.caller_service, 'its caller')
            || ' to ' || coalesce(root.service_name, 'it') || CASE judged.cause
                WHEN 'context_not_extracted'
                    THEN ', though the call has a span: install the ingress there, look for a proxy that drops headers'
                WHEN 'client_group_closed'
                    THEN ', and no call has a span: open the span group http_client, send calls through gymlog.request()'
                ELSE ': send the call through gymlog.request(), or inject traceparent'
            END
    END AS hint,
    json_object(
        'grounds', coalesce(judged.grounds, to_json([judged.weak_ground])),
        'score', judged.score,
        'rollout_id', root.rollout_id,
        'traceparent', judged.traceparent,
        'caller_trace_id', judged.caller_trace_id,
        'caller_span_id', judged.caller_span_id,
        'caller_place', judged.caller_place,
        'usual_caller', judged.usual_caller,
        'other_traces_of_rollout', judged.other_traces
    ) AS evidence
FROM judged
JOIN spans AS root ON root.rowid = judged.node
WHERE judged.cause IS NOT NULL;

COMMENT ON VIEW _finding_split_trace IS 'One row is a span that began a trace of its own, though what called it was in another one.';

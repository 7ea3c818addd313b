-- One row is a request that began a trace of its own, though its caller was in another one.
--
-- It is a SERVER or CONSUMER span without a parent, and one of these is true:
-- 1. a span of the same rollout, in another trace and process, is running when it begins: its caller
--    is a client span without a server half, else the innermost of those that outlast it;
-- 2. a CLIENT span without a server half, in another trace, lies around it, of the same method and
--    the same port or path;
-- 3. other traces of the same rollout exist, but none is running then: told as a note when
--    its service is never called otherwise, since its caller may write no spans at all;
-- 4. it is no GET, HEAD or OPTIONS, and its service is otherwise called with a trace context.
CREATE VIEW _finding_split_trace AS
WITH
root AS (
    SELECT
        rowid AS node,
        trace_id,
        span_id,
        name,
        service_name,
        instance,
        run_id,
        rollout_id,
        start_time_unix_nano,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time_unix_nano,
        coalesce(
            attributes->>'http.request.method',
            attributes->>'http.method',
            split_part(name, ' ', 1)
        ) AS method,
        coalesce(
            attributes->>'url.path',
            attributes->>'http.target',
            attributes->>'http.route',
            split_part(name, ' ', 2)
        ) AS path,
        coalesce(attributes->>'server.port', attributes->>'net.host.port') AS port,
        file,
        line
    FROM spans
    WHERE kind IN ('SERVER', 'CONSUMER') AND parent_span_id IS NULL
),
lone_client AS (
    SELECT
        client.rowid AS node,
        client.trace_id,
        client.instance,
        client.start_time_unix_nano,
        coalesce(client.end_time_unix_nano, client.start_time_unix_nano + client.open_ns)
            AS end_time_unix_nano,
        coalesce(
            client.attributes->>'http.request.method',
            client.attributes->>'http.method',
            split_part(client.name, ' ', 2)
        ) AS method,
        client.attributes->>'server.port' AS port,
        coalesce(client.attributes->>'url.full', client.attributes->>'http.url') AS url
    FROM spans AS client
    WHERE client.kind IN ('CLIENT', 'PRODUCER')
        AND client.rowid NOT IN (
            SELECT parent
            FROM _edges
            WHERE parent IS NOT NULL
        )
),
rollout_caller AS (
    SELECT
        root.node,
        arg_max(
            other.rowid,
            (
                other.rowid IN (SELECT node FROM lone_client),
                coalesce(other.end_time_unix_nano, other.start_time_unix_nano + other.open_ns)
                    + 5000000 >= root.end_time_unix_nano,
                other.start_time_unix_nano,
                other.span_id
            )
        ) AS caller
    FROM root
    JOIN spans AS other
        ON other.rollout_id = root.rollout_id
        AND other.run_id IS NOT DISTINCT FROM root.run_id
        AND other.trace_id <> root.trace_id
        AND other.instance <> root.instance
        AND other.start_time_unix_nano <= root.start_time_unix_nano
        AND coalesce(other.end_time_unix_nano, other.start_time_unix_nano + other.open_ns)
            >= root.start_time_unix_nano
    GROUP BY root.node
),
client_caller AS (
    SELECT
        root.node,
        arg_max(client.node, (client.start_time_unix_nano, client.node)) AS caller
    FROM root
    JOIN lone_client AS client
        ON client.method = root.method
        AND client.trace_id <> root.trace_id
        AND client.instance <> root.instance
        AND client.start_time_unix_nano <= root.start_time_unix_nano
        AND client.end_time_unix_nano >= root.end_time_unix_nano
        AND (
            root.port IS NULL
            OR client.port = root.port
            OR contains(client.url, ':' || root.port || '/')
        )
        AND (coalesce(root.path, '') = '' OR contains(client.url, root.path))
    GROUP BY root.node
),
other_trace AS (
    SELECT
        root.node,
        count(DISTINCT other.trace_id) AS traces
    FROM root
    JOIN spans AS other
        ON other.rollout_id = root.rollout_id
        AND other.run_id IS NOT DISTINCT FROM root.run_id
        AND other.trace_id <> root.trace_id
    GROUP BY root.node
),
usual_caller AS (
    SELECT
        server,
        arg_max(client, (calls, client)) AS client
    FROM service_edges
    WHERE kind IN ('rpc', 'queue')
    GROUP BY server
),
judged AS (
    SELECT
        root.node,
        root.trace_id,
        root.span_id,
        root.name,
        root.service_name,
        root.run_id,
        root.rollout_id,
        root.file,
        root.line,
        coalesce(rollout_caller.caller, client_caller.caller) AS caller,
        CASE
            WHEN rollout_caller.caller IS NOT NULL THEN 'a span of the same rollout was running'
            WHEN client_caller.caller IS NOT NULL THEN 'a client span without a server half lies around it'
            WHEN other_trace.traces > 0 THEN 'other traces of the same rollout exist'
            WHEN root.method NOT IN ('GET', 'HEAD', 'OPTIONS') AND usual_caller.client IS NOT NULL
                THEN 'its service is otherwise called with a trace context'
        END AS ground,
        usual_caller.client AS usual_caller,
        coalesce(other_trace.traces, 0) AS other_traces
    FROM root
    LEFT JOIN rollout_caller USING (node)
    LEFT JOIN client_caller USING (node)
    LEFT JOIN other_trace USING (node)
    LEFT JOIN usual_caller ON usual_caller.server = root.service_name
)
SELECT
    'split_trace' AS code,
    CASE
        WHEN judged.caller IS NOT NULL THEN 'error'
        WHEN judged.other_traces > 0 AND judged.usual_caller IS NULL THEN 'note'
        ELSE 'warning'
    END AS severity,
    judged.run_id,
    judged.trace_id,
    judged.span_id,
    judged.file,
    judged.line,
    coalesce(caller.service_name, judged.usual_caller, 'unknown') || ' -> '
        || _span_label(judged.name, judged.service_name) AS place,
    _span_label(judged.name, judged.service_name) || ' began a trace of its own'
        || coalesce(', rollout ' || judged.rollout_id, '')
        || coalesce(
            '; its caller is ' || _span_label(caller.name, caller.service_name) || ', trace '
                || caller.trace_id || ' at ' || caller.file || ':' || caller.line,
            '; ' || judged.ground
        ) AS message,
    'the trace context was not passed from '
        || coalesce(caller.service_name, judged.usual_caller, 'its caller') || ' to '
        || coalesce(judged.service_name, 'it')
        || ': send the call through gymlog.request(), or inject traceparent' AS hint,
    json_object(
        'ground', judged.ground,
        'rollout_id', judged.rollout_id,
        'caller_trace_id', caller.trace_id,
        'caller_span_id', caller.span_id,
        'caller_place', caller.file || ':' || caller.line,
        'usual_caller', judged.usual_caller,
        'other_traces_of_rollout', judged.other_traces
    ) AS evidence
FROM judged
LEFT JOIN spans AS caller ON caller.rowid = judged.caller
WHERE judged.ground IS NOT NULL;

COMMENT ON VIEW _finding_split_trace IS 'One row is a request that began a trace of its own, though its caller was in another one.';

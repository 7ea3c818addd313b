-- A ground for a join, and the doubt that it leaves: 1 where it does not hold.
CREATE MACRO _ground(holds, name, doubt) AS {
    'name': name,
    'doubt': CASE WHEN holds THEN doubt ELSE 1 END::DOUBLE
};

COMMENT ON MACRO _ground IS 'A ground for a join, and the doubt that it leaves: 1 where it does not hold.';

-- One row is a span without its parent and a span that may be it, with the grounds for that.
--
-- Each ground leaves some doubt, and the score is 1 less the product of these doubts. A span is no
-- candidate where a child of it is.
CREATE VIEW _join_candidates AS
WITH
pair AS MATERIALIZED (
    SELECT
        node,
        other,
        bool_or(ground = 'request') AS is_request,
        bool_or(ground IN ('client', 'unserved')) AS is_call,
        bool_or(ground IN ('rollout', 'trace', 'usual_parent', 'inside')) AS is_inner,
        bool_or(ground = 'usual_parent') AS is_usual,
        bool_or(ground = 'inside') AS is_inside
    FROM _running_then
    GROUP BY node, other
),
outer_pair AS (
    SELECT DISTINCT
        pair.node,
        edge.parent AS other
    FROM pair
    JOIN _edges AS edge ON edge.node = pair.other
),
child AS MATERIALIZED (
    SELECT
        rowid AS node,
        trace_id || span_id AS ids,
        kind IN ('SERVER', 'CONSUMER') AS is_server,
        name,
        trace_id,
        instance,
        rollout_id,
        attributes->>'gymlog.task.id' AS task_id,
        _asked_method(name, attributes) AS method,
        _asked_path(name, attributes) AS path,
        _asked_port(attributes) AS port,
        start_time_unix_nano,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time_unix_nano
    FROM spans
    WHERE rowid IN (
        SELECT node
        FROM pair
    )
),
candidate AS MATERIALIZED (
    SELECT
        rowid AS node,
        trace_id || span_id AS ids,
        kind IN ('CLIENT', 'PRODUCER') AS is_client,
        name,
        trace_id,
        instance,
        rollout_id,
        attributes->>'gymlog.task.id' AS task_id,
        _called_method(name, attributes) AS method,
        _called_url(attributes) AS url,
        attributes->>'server.port' AS port,
        1 + coalesce(try_cast(attributes->>'http.request.resend_count' AS BIGINT), 0) AS tries,
        start_time_unix_nano,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time_unix_nano
    FROM spans
    WHERE rowid IN (
        SELECT other
        FROM pair
    )
),
answered AS (
    SELECT
        parent,
        count(*) AS answers
    FROM _edges
    WHERE parent IN (
        SELECT other
        FROM pair
    )
    GROUP BY parent
),
compared AS (
    SELECT
        pair.node,
        pair.other,
        pair.is_request,
        pair.is_call,
        pair.is_inner,
        pair.is_usual,
        pair.is_inside,
        child.ids,
        other.ids AS other_ids,
        child.is_server,
        other.is_client,
        greatest(other.tries - coalesce(answered.answers, 0), 0) AS free_tries,
        coalesce(child.method = other.method, TRUE) AS fits_method,
        CASE
            WHEN child.is_server AND NOT _is_any_path(child.path) THEN contains(other.url, child.path)
        END AS fits_path,
        CASE
            WHEN child.is_server AND child.port IS NOT NULL
                THEN coalesce(child.port = other.port, FALSE)
                    OR contains(other.url, ':' || child.port || '/')
        END AS fits_port,
        other.url IS NULL
            AND NOT (_is_any_path(child.path) AND child.port IS NULL) AS has_no_url,
        other.instance = child.instance AS is_same_process,
        other.trace_id = child.trace_id AS is_same_trace,
        other.name = child.name AS is_same_name,
        coalesce(other.rollout_id = child.rollout_id, FALSE) AS is_same_rollout,
        coalesce(other.task_id = child.task_id, FALSE) AS is_same_task,
        other.end_time_unix_nano + 5000000 >= child.end_time_unix_nano AS outlasts,
        child.start_time_unix_nano - other.start_time_unix_nano AS after_ns
    FROM pair
    ANTI JOIN outer_pair USING (node, other)
    JOIN child ON child.node = pair.node
    JOIN candidate AS other ON other.node = pair.other
    LEFT JOIN answered ON answered.parent = pair.other
),
fitting AS (
    SELECT
        *,
        is_client
            AND free_tries > 0
            AND (
                NOT is_server
                OR (fits_method AND coalesce(fits_path, TRUE) AND coalesce(fits_port, TRUE))
            ) AS is_free_call,
        CASE WHEN is_client THEN greatest(free_tries, 1) ELSE 1000000000 END AS room
    FROM compared
),
caller AS (
    SELECT
        node,
        other,
        ids,
        other_ids,
        after_ns,
        room,
        CASE WHEN is_server THEN 'call' ELSE 'unserved' END AS kind,
        [
            _ground(is_same_rollout, 'same rollout', 0.4),
            _ground(is_free_call, 'a call that nothing answers', 0.6),
            _ground(is_free_call AND coalesce(fits_path, FALSE), 'same path', 0.5),
            _ground(is_free_call AND coalesce(fits_port, FALSE), 'same port', 0.7),
            _ground(outlasts, 'ended later', 0.7)
        ] AS grounds,
        CASE WHEN is_client AND NOT is_free_call THEN 0.5 ELSE 1 END AS trust
    FROM fitting
    WHERE NOT is_same_process
        AND NOT is_same_trace
        AND (
            is_request
            OR (is_call AND is_free_call AND (is_same_rollout OR (outlasts AND NOT has_no_url)))
        )
),
encloser AS (
    SELECT
        node,
        other,
        ids,
        other_ids,
        after_ns,
        room,
        'process' AS kind,
        [
            _ground(TRUE, 'same process', 0.5),
            _ground(is_same_rollout, 'same rollout', 0.4),
            _ground(is_same_trace, 'same trace', 0.4),
            _ground(is_same_task, 'same task', 0.5),
            _ground(is_usual, 'the usual parent', 0.5),
            _ground(is_inside, 'always inside a request', 0.8),
            _ground(outlasts, 'ended later', 0.7)
        ] AS grounds,
        1 AS trust
    FROM fitting
    WHERE is_same_process
        AND is_inner
        AND NOT is_same_name
        AND (NOT is_same_trace OR (after_ns > 0 AND ids <> other_ids))
)
SELECT
    node,
    other,
    ids,
    other_ids,
    kind,
    room,
    after_ns,
    trust * (1 - list_product(list_transform(grounds, lambda each: each.doubt))) AS score,
    list_transform(list_filter(grounds, lambda each: each.doubt < 1), lambda each: each.name)
        AS grounds
FROM (
    FROM caller
    UNION ALL BY NAME
    FROM encloser
)
UNION ALL
SELECT
    request.node,
    sender.rowid,
    request.ids,
    sender.trace_id || sender.span_id,
    'header',
    1000000000,
    request.start_time_unix_nano - sender.start_time_unix_nano,
    1,
    ['its traceparent header']
FROM (
    SELECT
        node,
        trace_id || span_id AS ids,
        start_time_unix_nano,
        sent
    FROM _lone_requests
) AS request
JOIN spans AS sender
    ON sender.trace_id = request.sent.trace_id
    AND sender.span_id = request.sent.span_id
    AND sender.occurrence = 1
    AND sender.rowid <> request.node
UNION ALL
SELECT
    node,
    other,
    ids,
    other_ids,
    'id',
    1000000000,
    after_ns,
    0.95,
    [ground]
FROM _respelled_parents;

COMMENT ON VIEW _join_candidates IS 'One row is a span without its parent and a span that may be it, with the grounds for that.';

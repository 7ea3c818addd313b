-- One row is a span without a parent and a span that was running when it began and has something in
-- common with it: `ground`.
--
-- request: the rollout, of a request and whatever ran; client: the method, of a request and a call
-- that nothing answers; unserved: the rollout, of a root in a service without requests; the others
-- as in _inner_roots.
--
-- What was running at a time is found by hashing: a span of up to 2^n ns lies in at most two spaces
-- of that length, and an instant in one, so that only spans of one key and space are compared.
CREATE VIEW _running_then AS
WITH
request AS MATERIALIZED (
    SELECT
        node,
        run_id,
        rollout_id,
        start_time_unix_nano,
        method
    FROM _lone_requests
),
serving AS (
    SELECT DISTINCT
        service_name,
        run_id
    FROM spans
    WHERE kind IN ('SERVER', 'CONSUMER')
),
inner_root AS MATERIALIZED (
    SELECT
        root.node,
        root.ground,
        root.usual_parent,
        span.trace_id,
        span.instance,
        span.service_name,
        span.kind,
        span.run_id,
        span.rollout_id,
        span.start_time_unix_nano
    FROM _inner_roots AS root
    JOIN spans AS span ON span.rowid = root.node
),
looking AS MATERIALIZED (
    SELECT
        node,
        'request' AS ground,
        hash('rollout', run_id, rollout_id) AS key,
        start_time_unix_nano
    FROM request
    WHERE rollout_id IS NOT NULL
    UNION ALL
    SELECT
        node,
        'client',
        hash('client', method),
        start_time_unix_nano
    FROM request
    WHERE method IS NOT NULL
    UNION ALL
    SELECT
        node,
        ground,
        CASE ground
            WHEN 'rollout' THEN hash('rollout', run_id, rollout_id)
            WHEN 'trace' THEN hash('trace', trace_id)
            WHEN 'usual_parent' THEN hash('name', instance, usual_parent)
            ELSE hash('request', instance)
        END,
        start_time_unix_nano
    FROM inner_root
    UNION ALL
    SELECT
        root.node,
        'unserved',
        hash('rollout', root.run_id, root.rollout_id),
        root.start_time_unix_nano
    FROM inner_root AS root
    ANTI JOIN serving
        ON serving.service_name IS NOT DISTINCT FROM root.service_name
        AND serving.run_id IS NOT DISTINCT FROM root.run_id
    WHERE root.ground = 'rollout' AND root.kind = 'INTERNAL'
),
seen AS MATERIALIZED (
    SELECT
        rowid AS node,
        trace_id,
        name,
        kind,
        instance,
        run_id,
        rollout_id,
        start_time_unix_nano,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time_unix_nano
    FROM spans
    WHERE rollout_id IN (
            SELECT rollout_id
            FROM request
            UNION
            SELECT rollout_id
            FROM inner_root
            WHERE ground = 'rollout'
        )
        OR trace_id IN (
            SELECT trace_id
            FROM inner_root
            WHERE ground = 'trace'
        )
        OR instance IN (
            SELECT instance
            FROM inner_root
            WHERE ground IN ('usual_parent', 'inside')
        )
),
running AS (
    SELECT
        node,
        hash('rollout', run_id, rollout_id) AS key,
        start_time_unix_nano,
        end_time_unix_nano
    FROM seen
    SEMI JOIN (
        SELECT rollout_id
        FROM request
        UNION
        SELECT rollout_id
        FROM inner_root
        WHERE ground = 'rollout'
    ) AS wanted USING (rollout_id)
    UNION ALL
    SELECT
        node,
        hash('client', method),
        start_time_unix_nano,
        end_time_unix_nano
    FROM _lone_clients
    SEMI JOIN request USING (method)
    UNION ALL
    SELECT
        node,
        hash('trace', trace_id),
        start_time_unix_nano,
        end_time_unix_nano
    FROM seen
    SEMI JOIN (
        SELECT trace_id
        FROM inner_root
        WHERE ground = 'trace'
    ) AS wanted USING (trace_id)
    UNION ALL
    SELECT
        seen.node,
        hash('name', seen.instance, seen.name),
        seen.start_time_unix_nano,
        seen.end_time_unix_nano
    FROM seen
    SEMI JOIN (
        SELECT
            instance,
            usual_parent
        FROM inner_root
        WHERE ground = 'usual_parent'
    ) AS wanted
        ON wanted.instance = seen.instance
        AND wanted.usual_parent = seen.name
    UNION ALL
    SELECT
        node,
        hash('request', instance),
        start_time_unix_nano,
        end_time_unix_nano
    FROM seen
    SEMI JOIN (
        SELECT instance
        FROM inner_root
        WHERE ground = 'inside'
    ) AS wanted USING (instance)
    WHERE kind IN ('SERVER', 'CONSUMER')
),
levelled AS MATERIALIZED (
    SELECT
        node,
        key,
        start_time_unix_nano,
        end_time_unix_nano,
        length(ltrim(
            greatest(end_time_unix_nano - start_time_unix_nano, 1)::BIT::VARCHAR,
            '0'
        )) AS level
    FROM running
    WHERE end_time_unix_nano >= start_time_unix_nano
),
space AS (
    SELECT
        node,
        key,
        level,
        start_time_unix_nano >> level AS number,
        start_time_unix_nano,
        end_time_unix_nano
    FROM levelled
    UNION ALL
    SELECT
        node,
        key,
        level,
        end_time_unix_nano >> level,
        start_time_unix_nano,
        end_time_unix_nano
    FROM levelled
    WHERE end_time_unix_nano >> level > start_time_unix_nano >> level
),
level AS (
    SELECT DISTINCT
        key,
        level
    FROM levelled
)
SELECT
    looking.node,
    space.node AS other,
    looking.ground
FROM looking
JOIN level USING (key)
JOIN space
    ON space.key = looking.key
    AND space.level = level.level
    AND space.number = looking.start_time_unix_nano >> level.level
    AND space.start_time_unix_nano <= looking.start_time_unix_nano
    AND space.end_time_unix_nano >= looking.start_time_unix_nano
WHERE space.node <> looking.node;

COMMENT ON VIEW _running_then IS 'One row is a span without a parent and a span that was running when it began and has something in common with it.';

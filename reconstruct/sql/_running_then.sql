-- One row is a span without a parent and a span that was running when it began and has something in
-- common with it: `ground`. Of one ground there are the 32 that began last.
--
-- request: the rollout, of a request and what ran in other processes; client: the method, of a
-- request and a call that nothing answers, where one of them has no rollout; unserved: the rollout,
-- of a root in a service without requests; the others as in _inner_roots.
--
-- What was running at a time is found by hashing: a span of up to 2^n ns lies in at most two spaces
-- of that length, and an instant in one, so that only spans of one key and space are compared.
CREATE VIEW _running_then AS
WITH
request AS MATERIALIZED (
    SELECT
        node,
        hash(instance) AS process,
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
        process,
        start_time_unix_nano
    FROM request
    WHERE rollout_id IS NOT NULL
    UNION ALL
    SELECT
        node,
        'client',
        hash('client', method, FALSE),
        process,
        start_time_unix_nano
    FROM request
    WHERE method IS NOT NULL
    UNION ALL
    SELECT
        node,
        'client',
        hash('client', method, TRUE),
        process,
        start_time_unix_nano
    FROM request
    WHERE method IS NOT NULL AND rollout_id IS NULL
    UNION ALL
    SELECT
        node,
        ground,
        CASE ground
            WHEN 'rollout' THEN hash('inner', instance, run_id, rollout_id)
            WHEN 'trace' THEN hash('trace', instance, trace_id)
            WHEN 'usual_parent' THEN hash('name', instance, usual_parent)
            ELSE hash('request', instance)
        END,
        NULL,
        start_time_unix_nano
    FROM inner_root
    UNION ALL
    SELECT
        root.node,
        'unserved',
        hash('rollout', root.run_id, root.rollout_id),
        hash(root.instance),
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
        hash(trace_id, span_id) AS ids,
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
keyed AS (
    SELECT
        node,
        ids,
        hash('rollout', run_id, rollout_id) AS key,
        hash(instance) AS process,
        start_time_unix_nano,
        end_time_unix_nano
    FROM seen
    WHERE rollout_id IS NOT NULL
    UNION ALL
    SELECT
        node,
        hash(trace_id, span_id),
        hash('client', method, rollout_id IS NOT NULL),
        hash(instance),
        start_time_unix_nano,
        end_time_unix_nano
    FROM _lone_clients
    UNION ALL
    SELECT
        node,
        ids,
        unnest([
            hash('inner', instance, run_id, rollout_id),
            hash('trace', instance, trace_id),
            hash('name', instance, name),
            CASE WHEN kind IN ('SERVER', 'CONSUMER') THEN hash('request', instance) END
        ]),
        hash(instance),
        start_time_unix_nano,
        end_time_unix_nano
    FROM seen
    SEMI JOIN inner_root USING (instance)
),
running AS MATERIALIZED (
    SELECT
        node,
        ids,
        key,
        process,
        start_time_unix_nano,
        end_time_unix_nano,
        length(ltrim(
            greatest(end_time_unix_nano - start_time_unix_nano, 1)::BIT::VARCHAR,
            '0'
        )) AS level
    FROM keyed
    WHERE end_time_unix_nano >= start_time_unix_nano
        AND key IN (
            SELECT key
            FROM looking
        )
),
space AS (
    SELECT
        *,
        start_time_unix_nano >> level AS number
    FROM running
    UNION ALL
    SELECT
        *,
        end_time_unix_nano >> level
    FROM running
    WHERE end_time_unix_nano >> level > start_time_unix_nano >> level
),
instant AS MATERIALIZED (
    SELECT
        looking.node,
        looking.ground,
        looking.key,
        looking.process,
        level.level,
        looking.start_time_unix_nano >> level.level AS number,
        looking.start_time_unix_nano
    FROM looking
    JOIN (
        SELECT DISTINCT
            key,
            level
        FROM running
    ) AS level USING (key)
)
SELECT
    instant.node,
    instant.ground,
    space.node AS other
FROM instant
JOIN space
    ON space.key = instant.key
    AND space.level = instant.level
    AND space.number = instant.number
WHERE space.start_time_unix_nano <= instant.start_time_unix_nano
    AND space.end_time_unix_nano >= instant.start_time_unix_nano
    AND space.node <> instant.node
    AND space.process IS DISTINCT FROM instant.process
QUALIFY row_number() OVER (
    PARTITION BY instant.node, instant.ground
    ORDER BY space.start_time_unix_nano DESC, space.ids, space.node
) <= 32;

COMMENT ON VIEW _running_then IS 'One row is a span without a parent and a span that was running when it began and has something in common with it.';

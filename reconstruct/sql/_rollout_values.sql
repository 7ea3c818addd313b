-- One row is something that a rollout of a step met and others may not have: a service instance, a
-- host, a route, an agent or resources server (environment), another service; or its attempt.
CREATE VIEW _rollout_values AS
WITH
met AS MATERIALIZED (
    SELECT DISTINCT
        step.key,
        member.rollout_id,
        line.owner,
        CASE WHEN line.kind = 'SERVER' THEN line.name END AS route
    FROM _rollout_spans AS member
    JOIN _span_lines AS line ON line.rowid = member.node
    JOIN _step_parts AS part
        ON part.trace_id = member.trace_id
        AND part.rollout_id = member.rollout_id
        AND part.run_id IS NOT DISTINCT FROM member.run_id
    JOIN _steps AS step
        ON step.job IS NOT DISTINCT FROM part.job
        AND (step.job IS NOT NULL OR step.run_id IS NOT DISTINCT FROM part.run_id)
),
place AS MATERIALIZED (
    SELECT DISTINCT
        met.key,
        met.rollout_id,
        owner.instance,
        owner.host_name,
        owner.service_name,
        owner.server_type
    FROM (
        SELECT DISTINCT
            key,
            rollout_id,
            owner
        FROM met
    ) AS met
    JOIN _owner_instances AS owner USING (owner)
),
valued AS (
    SELECT
        key,
        rollout_id,
        'instance' AS aspect,
        instance AS value
    FROM place
    UNION ALL
    SELECT
        key,
        rollout_id,
        'host',
        host_name
    FROM place
    UNION ALL
    SELECT
        key,
        rollout_id,
        CASE
            WHEN server_type IN ('responses_api_agents', 'resources_servers') THEN 'environment'
            ELSE 'service'
        END,
        service_name
    FROM place
    UNION ALL
    SELECT
        key,
        rollout_id,
        'attempt',
        nullif(regexp_extract(rollout_id, '-a([0-9]+)$', 1), '')
    FROM met
    UNION ALL
    SELECT
        met.key,
        met.rollout_id,
        'route',
        _span_label(met.route, owner.service_name)
    FROM met
    JOIN _owner_instances AS owner USING (owner)
    WHERE met.route IS NOT NULL
)
SELECT DISTINCT
    key,
    rollout_id,
    aspect,
    value
FROM valued
WHERE value IS NOT NULL;

COMMENT ON VIEW _rollout_values IS 'One row is something that a rollout of a step (key in _steps) met and others may not have: a service instance, a host, a route, an environment, a service; or its attempt.';

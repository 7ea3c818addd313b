-- One row is a span without a parent that is no request, and what says that it should have one in
-- its own process:
--
-- rollout: the traces of its rollout are several;
-- trace: its trace has another root;
-- usual_parent: at least as many spans of its name in its service, and 3, have a parent there;
-- inside: all 5 or more of its name in its service lie within requests of their processes, while
-- these are idle so often that chance would not have it so (1 % at most).
--
-- A span with a link says by that what it belongs to, and is left alone. So is one with a rollout id
-- by the last two: who knows its rollout still has its context.
CREATE VIEW _inner_roots AS
WITH
root AS MATERIALIZED (
    SELECT
        rowid AS node,
        trace_id,
        name,
        kind,
        service_name,
        instance,
        run_id,
        rollout_id,
        start_time_unix_nano,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time_unix_nano
    FROM spans
    WHERE parent_span_id IS NULL
        AND kind NOT IN ('SERVER', 'CONSUMER')
        AND links::VARCHAR = '[]'
),
divided_rollout AS (
    SELECT
        run_id,
        rollout_id
    FROM _rollout_traces
    GROUP BY run_id, rollout_id
    HAVING count(*) > 1
),
anonymous_kind AS (
    SELECT DISTINCT
        service_name,
        name,
        kind
    FROM root
    WHERE rollout_id IS NULL
),
counted_kind AS (
    SELECT
        span.service_name,
        span.name,
        span.kind,
        count(*) FILTER (span.parent_span_id IS NULL) AS roots,
        count(*) FILTER (span.parent_span_id IS NOT NULL) AS children
    FROM spans AS span
    JOIN anonymous_kind AS known
        ON known.name = span.name
        AND known.kind = span.kind
        AND known.service_name IS NOT DISTINCT FROM span.service_name
    GROUP BY span.service_name, span.name, span.kind
),
mixed_kind AS (
    SELECT
        service_name,
        name,
        kind
    FROM counted_kind
    WHERE children >= greatest(roots, 3)
),
usual_parent AS (
    SELECT
        child.service_name,
        child.name,
        child.kind,
        mode(parent.name ORDER BY parent.name) AS parent_name
    FROM spans AS child
    JOIN mixed_kind AS mixed
        ON mixed.name = child.name
        AND mixed.kind = child.kind
        AND mixed.service_name IS NOT DISTINCT FROM child.service_name
    JOIN _edges AS edge ON edge.node = child.rowid
    JOIN spans AS parent ON parent.rowid = edge.parent AND parent.instance = child.instance
    GROUP BY child.service_name, child.name, child.kind
),
lone_root AS (
    SELECT
        root.node,
        root.name,
        root.kind,
        root.service_name,
        root.instance,
        root.start_time_unix_nano,
        root.end_time_unix_nano
    FROM root
    JOIN counted_kind AS counted
        ON counted.name = root.name
        AND counted.kind = root.kind
        AND counted.service_name IS NOT DISTINCT FROM root.service_name
    WHERE counted.children = 0 AND counted.roots >= 5
),
request AS (
    SELECT
        instance,
        start_time_unix_nano,
        coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time_unix_nano
    FROM spans
    SEMI JOIN lone_root USING (instance)
    WHERE kind IN ('SERVER', 'CONSUMER')
),
busy AS (
    SELECT
        instance,
        start_time_unix_nano,
        end_time_unix_nano,
        max(end_time_unix_nano) OVER (PARTITION BY instance ORDER BY start_time_unix_nano)
            AS busy_until,
        max(end_time_unix_nano) OVER (
            PARTITION BY instance
            ORDER BY start_time_unix_nano, end_time_unix_nano
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS busy_before
    FROM request
),
busy_share AS (
    SELECT
        busy.instance,
        sum(greatest(
            busy.end_time_unix_nano - greatest(busy.start_time_unix_nano, busy.busy_before),
            0
        )) / greatest(max(owner.last_time_unix_nano - owner.first_time_unix_nano), 1) AS share
    FROM busy
    JOIN instances AS owner USING (instance)
    GROUP BY busy.instance
),
inside_kind AS (
    SELECT
        root.service_name,
        root.name,
        root.kind
    FROM lone_root AS root
    ASOF LEFT JOIN busy
        ON busy.instance = root.instance
        AND busy.start_time_unix_nano <= root.start_time_unix_nano
    LEFT JOIN busy_share AS share ON share.instance = root.instance
    GROUP BY root.service_name, root.name, root.kind
    HAVING bool_and(coalesce(busy.busy_until >= root.end_time_unix_nano, FALSE))
        AND pow(least(max(share.share), 1), count(*)) <= 0.01
)
SELECT
    root.node,
    'rollout' AS ground,
    NULL::VARCHAR AS usual_parent
FROM root
SEMI JOIN divided_rollout AS divided
    ON divided.rollout_id = root.rollout_id
    AND divided.run_id IS NOT DISTINCT FROM root.run_id
UNION ALL
SELECT
    root.node,
    'trace',
    NULL
FROM root
SEMI JOIN (
    SELECT trace_id
    FROM traces
    WHERE root_count > 1
) AS rooted USING (trace_id)
UNION ALL
SELECT
    root.node,
    'usual_parent',
    usual.parent_name
FROM root
JOIN usual_parent AS usual
    ON usual.name = root.name
    AND usual.kind = root.kind
    AND usual.service_name IS NOT DISTINCT FROM root.service_name
WHERE root.rollout_id IS NULL
UNION ALL
SELECT
    root.node,
    'inside',
    NULL
FROM root
SEMI JOIN inside_kind AS inside
    ON inside.name = root.name
    AND inside.kind = root.kind
    AND inside.service_name IS NOT DISTINCT FROM root.service_name
WHERE root.rollout_id IS NULL;

COMMENT ON VIEW _inner_roots IS 'One row is a span without a parent that is no request, and what says that it should have one in its own process.';

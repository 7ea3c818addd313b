-- One row is a section of the critical path of a root, both by their rowid in spans; a root of the
-- scope 'rollout' may be a rollout itself, by a number below zero. Arguments as of _waits_of.
CREATE MACRO _sections_of(ids, scope, outliving, overlap) AS TABLE (
    WITH
    waited AS MATERIALIZED (
        SELECT
            node,
            parent,
            root,
            start_time,
            end_time,
            free_from,
            is_assumed
        FROM _waits_of(ids, scope, outliving, overlap)
        WHERE root IS NOT NULL
    ),
    last_child AS (
        SELECT
            parent AS node,
            max(end_time) AS end_time
        FROM waited
        WHERE parent IS NOT NULL
        GROUP BY parent
    )
    SELECT
        child.parent AS node,
        child.root,
        child.free_from AS start_time,
        child.start_time AS end_time,
        coalesce(above.is_assumed, FALSE) AS is_assumed
    FROM waited AS child
    LEFT JOIN waited AS above ON above.node = child.parent AND above.is_assumed
    WHERE child.parent IS NOT NULL AND child.start_time > child.free_from
    UNION ALL
    SELECT
        waited.node,
        waited.root,
        coalesce(last_child.end_time, waited.start_time),
        waited.end_time,
        waited.is_assumed
    FROM waited
    LEFT JOIN last_child USING (node)
    WHERE waited.end_time > coalesce(last_child.end_time, waited.start_time)
);

COMMENT ON MACRO TABLE _sections_of IS 'One row is a section of the critical path of a root, both by their rowid in spans.';

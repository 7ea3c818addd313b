-- One row is a span and its parent in the same rollout; of the traces in the list `ids`, or of all
-- when it is null.
--
-- What has no parent in its rollout has the rollout itself for one: a node of a number below zero,
-- from the rollout's start to its end. A rollout that is one trace below a span that lasts as long
-- does without.
CREATE MACRO _rollout_edges_of(ids) AS TABLE (
    WITH
    part AS MATERIALIZED (
        SELECT
            part.trace_id,
            part.span_count,
            rollout.number,
            rollout.trace_count,
            rollout.start_time_unix_nano,
            rollout.end_time_unix_nano
        FROM _rollout_traces AS part
        JOIN _rollout_numbers AS rollout
            ON rollout.rollout_id = part.rollout_id
            AND rollout.run_id IS NOT DISTINCT FROM part.run_id
        WHERE ids IS NULL OR part.trace_id IN (SELECT unnest(ids))
    ),
    top AS (
        SELECT
            trace_id,
            count(*) AS tops,
            min(start_time_unix_nano) AS start_time,
            max(coalesce(end_time_unix_nano, start_time_unix_nano + open_ns)) AS end_time
        FROM _edges
        WHERE parent IS NULL AND (ids IS NULL OR trace_id IN (SELECT unnest(ids)))
        GROUP BY trace_id
    ),
    whole_trace AS MATERIALIZED (
        SELECT
            part.trace_id,
            part.number,
            part.trace_count = 1
                AND top.tops = 1
                AND top.start_time = part.start_time_unix_nano
                AND top.end_time = part.end_time_unix_nano AS is_alone
        FROM part
        JOIN traces AS trace ON trace.trace_id = part.trace_id
        JOIN top ON top.trace_id = part.trace_id
        WHERE part.span_count = trace.span_count
    ),
    member AS MATERIALIZED (
        SELECT
            span.node,
            rollout.number
        FROM _rollout_spans AS span
        JOIN _rollout_numbers AS rollout
            ON rollout.rollout_id = span.rollout_id
            AND rollout.run_id IS NOT DISTINCT FROM span.run_id
        WHERE span.trace_id IN (SELECT trace_id FROM part)
            AND span.trace_id NOT IN (SELECT trace_id FROM whole_trace)
    )
    SELECT
        edge.node,
        CASE
            WHEN edge.parent IS NOT NULL OR trace.is_alone THEN edge.parent
            ELSE -trace.number
        END AS parent,
        trace.number AS tree,
        edge.start_time_unix_nano AS start_time,
        coalesce(edge.end_time_unix_nano, edge.start_time_unix_nano + edge.open_ns) AS end_time
    FROM _edges AS edge
    JOIN whole_trace AS trace USING (trace_id)
    UNION ALL
    SELECT
        edge.node,
        CASE WHEN above.number = member.number THEN edge.parent ELSE -member.number END,
        member.number,
        edge.start_time_unix_nano,
        coalesce(edge.end_time_unix_nano, edge.start_time_unix_nano + edge.open_ns)
    FROM member
    JOIN _edges AS edge USING (node)
    LEFT JOIN member AS above ON above.node = edge.parent
    UNION ALL
    SELECT
        -number,
        NULL,
        number,
        start_time_unix_nano,
        end_time_unix_nano
    FROM _rollout_numbers
    WHERE number IN (SELECT number FROM part)
        AND number NOT IN (SELECT number FROM whole_trace WHERE is_alone)
);

COMMENT ON MACRO TABLE _rollout_edges_of IS 'One row is a span and its parent in the same rollout, which for the topmost is the rollout itself: a node below zero.';

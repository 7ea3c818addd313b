-- One row is a span (node: its rowid in spans) that lies on the critical path of its rollout, and for
-- how long; of a span in no rollout, on that of its trace.
CREATE VIEW _rollout_blames AS
SELECT
    node,
    sum(end_time - start_time)::BIGINT AS blame_ns
FROM _rollout_sections
WHERE node IS NOT NULL
GROUP BY node
UNION ALL
SELECT
    node,
    sum(end_time - start_time)::BIGINT
FROM _sections_of(
    (
        SELECT coalesce(list(trace.trace_id), [])
        FROM traces AS trace
        LEFT JOIN (
            SELECT
                trace_id,
                sum(span_count) AS span_count
            FROM _rollout_traces
            GROUP BY trace_id
        ) AS part ON part.trace_id = trace.trace_id
        WHERE part.span_count IS DISTINCT FROM trace.span_count
    ),
    'trace',
    'clip',
    0
)
WHERE node NOT IN (SELECT node FROM _rollout_spans)
GROUP BY node;

COMMENT ON VIEW _rollout_blames IS 'One row is a span (node: its rowid in spans) that lies on the critical path of its rollout, and for how long; of a span in no rollout, on that of its trace.';

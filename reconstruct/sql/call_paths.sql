-- One row is a call path: services and names from the topmost span of a rollout, or of a trace, down
-- to a span. All of them are the trees of all rollouts laid over each other.
CREATE VIEW call_paths AS
WITH RECURSIVE
span_path AS MATERIALIZED (
    SELECT
        node,
        call_path
    FROM _span_paths
),
distinct_path AS (
    SELECT
        call_path,
        min(node) AS node,
        count(*) AS span_count
    FROM span_path
    GROUP BY call_path
),
step AS MATERIALIZED (
    SELECT
        path.call_path,
        above_path.call_path AS parent_call_path,
        span.service_name,
        span.name,
        CASE WHEN edge.orphan AND edge.parent IS NULL THEN '(missing) > ' ELSE '' END
            || CASE
                WHEN span.service_name IS NOT DISTINCT FROM above.service_name THEN ''
                ELSE coalesce(span.service_name || ': ', '')
            END
            || span.name AS words,
        path.span_count
    FROM distinct_path AS path
    JOIN spans AS span ON span.rowid = path.node
    JOIN _rollout_edges AS edge ON edge.node = path.node
    LEFT JOIN spans AS above ON above.rowid = edge.parent
    LEFT JOIN span_path AS above_path ON above_path.node = edge.parent
),
chain AS (
    SELECT
        call_path,
        parent_call_path AS ancestor,
        (parent_call_path IS NOT NULL)::BIGINT AS depth,
        words,
        count(parent_call_path) OVER () AS climbing
    FROM step
    UNION ALL
    SELECT
        lower.call_path,
        upper.ancestor,
        lower.depth + coalesce(upper.depth, 0),
        CASE
            WHEN upper.words IS NULL OR starts_with(lower.words, '… > ') THEN lower.words
            WHEN length(upper.words) + length(lower.words) > 250
                THEN regexp_replace(
                    right(upper.words || ' > ' || lower.words, 250), '^.*? > ', '… > '
                )
            ELSE upper.words || ' > ' || lower.words
        END,
        count(upper.ancestor) OVER ()
    FROM chain AS lower
    LEFT JOIN chain AS upper ON upper.call_path = lower.ancestor
    WHERE lower.climbing > 0
)
SELECT
    printf('%016x', step.call_path) AS call_path,
    printf('%016x', step.parent_call_path) AS parent_call_path,
    step.service_name,
    step.name,
    chain.depth,
    chain.words AS calls,
    step.span_count
FROM chain
JOIN step USING (call_path)
WHERE chain.climbing = 0;

COMMENT ON VIEW call_paths IS 'One row is a call path: services and names from the topmost span of a rollout, or of a trace, down to a span.';
COMMENT ON COLUMN call_paths.call_path IS '16 hex digits, a hash of the services and names; other versions of DuckDB give other ones.';
COMMENT ON COLUMN call_paths.parent_call_path IS 'The path that ends one span above; null at the top.';
COMMENT ON COLUMN call_paths.service_name IS 'service.name of the span that it ends at.';
COMMENT ON COLUMN call_paths.name IS 'Name of that span.';
COMMENT ON COLUMN call_paths.depth IS 'Spans above that one; 0 is the top.';
COMMENT ON COLUMN call_paths.calls IS 'The path in words, the top first: names, and a service before the first span in it; what stands for the beginning of a long one is …, and (missing) for a parent that is not in the input.';
COMMENT ON COLUMN call_paths.span_count IS 'Spans that have it.';

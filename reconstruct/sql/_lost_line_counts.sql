-- One row is a service instance of which lines are missing: between its first number and its last,
-- or by its own word.
CREATE VIEW _lost_line_counts AS
WITH numbered AS (
    SELECT
        owner,
        seq
    FROM _span_lines
    UNION ALL
    SELECT
        owner,
        seq
    FROM _log_lines
    UNION ALL
    SELECT
        owner,
        seq
    FROM _metric_lines
    UNION ALL
    SELECT
        owner,
        seq
    FROM _process_lines
)
SELECT
    owner.instance,
    max(numbered.seq) + 1 - count(DISTINCT numbered.seq)
        + coalesce(any_value(owner.records_dropped), 0) AS lines
FROM numbered
JOIN _owner_instances AS owner USING (owner)
WHERE numbered.seq IS NOT NULL
GROUP BY owner.instance
HAVING lines > 0;

COMMENT ON VIEW _lost_line_counts IS 'One row is a service instance of which lines are missing.';

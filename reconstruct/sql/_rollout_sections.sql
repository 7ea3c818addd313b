-- One row is a section of the critical path of a rollout; node is the span's rowid in spans, null
-- where none of the rollout's spans was running.
CREATE VIEW _rollout_sections AS
SELECT
    rollout.run_id,
    rollout.rollout_id,
    CASE WHEN section.node >= 0 THEN section.node END AS node,
    section.start_time,
    section.end_time,
    section.is_assumed
FROM _sections_of(NULL, 'rollout', 'clip', 0) AS section
JOIN (
    SELECT
        node,
        tree
    FROM _rollout_edges_of(NULL)
    WHERE parent IS NULL
) AS root ON root.node = section.root
JOIN _rollout_numbers AS rollout ON rollout.number = root.tree;

COMMENT ON VIEW _rollout_sections IS 'One row is a section of the critical path of a rollout; node is the span''s rowid in spans, null where none of the rollout''s spans was running.';

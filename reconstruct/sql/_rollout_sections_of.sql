-- One row is a section of the critical path of a rollout; node is the span's rowid in spans, null
-- where none of the rollout's spans was running. Arguments as of _waits_of.
CREATE MACRO _rollout_sections_of(ids, outliving, overlap) AS TABLE (
    SELECT
        rollout.run_id,
        rollout.rollout_id,
        CASE WHEN section.node >= 0 THEN section.node END AS node,
        section.start_time,
        section.end_time,
        section.is_assumed
    FROM _sections_of(ids, 'rollout', outliving, overlap) AS section
    JOIN (
        SELECT
            node,
            tree
        FROM _rollout_edges_of(ids)
        WHERE parent IS NULL
    ) AS root ON root.node = section.root
    JOIN _rollout_numbers AS rollout ON rollout.number = root.tree
);

COMMENT ON MACRO TABLE _rollout_sections_of IS 'One row is a section of the critical path of a rollout; node is the span''s rowid in spans, null where none of the rollout''s spans was running.';

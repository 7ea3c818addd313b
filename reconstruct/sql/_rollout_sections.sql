-- One row is a section of the critical path of a rollout; node is the span's rowid in spans, null
-- where none of the rollout's spans was running.
CREATE VIEW _rollout_sections AS
FROM _rollout_sections_of(NULL, 'clip', 0);

COMMENT ON VIEW _rollout_sections IS 'One row is a section of the critical path of a rollout; node is the span''s rowid in spans, null where none of the rollout''s spans was running.';

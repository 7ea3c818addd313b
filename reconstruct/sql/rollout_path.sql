-- One row is a section of the critical path of a rollout: a stretch of time in which the work of one
-- span decided when the rollout ended. They lie end to end from its start to its end.
--
-- Where a rollout has several traces, or spans side by side without a parent in it, each of these is
-- waited for as children are for their parent, and what lies between them is nobody's.
CREATE VIEW rollout_path AS
SELECT
    section.run_id,
    section.rollout_id,
    span.trace_id,
    span.span_id,
    span.occurrence,
    section.start_time AS start_time_unix_nano,
    section.end_time AS end_time_unix_nano,
    section.end_time - section.start_time AS duration_ns,
    section.is_assumed AS assumed
FROM _rollout_sections AS section
LEFT JOIN spans AS span ON span.rowid = section.node;

COMMENT ON VIEW rollout_path IS 'One row is a section of the critical path of a rollout: a stretch of time in which the work of one span decided when the rollout ended; they lie end to end from its start to its end.';
COMMENT ON COLUMN rollout_path.run_id IS 'nemo.run.id; rollout ids repeat from run to run.';
COMMENT ON COLUMN rollout_path.rollout_id IS 'nemo.gym.rollout.id.';
COMMENT ON COLUMN rollout_path.trace_id IS '32 lower-case hex digits; null where no span of the rollout was running.';
COMMENT ON COLUMN rollout_path.span_id IS 'The span that was worked in; null where none was running.';
COMMENT ON COLUMN rollout_path.occurrence IS 'occurrence of that span in spans.';
COMMENT ON COLUMN rollout_path.start_time_unix_nano IS 'Start of the section, ns since 1970.';
COMMENT ON COLUMN rollout_path.end_time_unix_nano IS 'End of the section, ns since 1970.';
COMMENT ON COLUMN rollout_path.duration_ns IS 'End less start, ns; over a rollout it adds up to the rollout''s duration.';
COMMENT ON COLUMN rollout_path.assumed IS 'As in critical_path.';

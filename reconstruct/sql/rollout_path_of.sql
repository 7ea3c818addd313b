-- One row is a section of the critical path of a rollout (see rollout_path) that has a span in one
-- of the traces in the list `ids`, or of any when it is null. All traces of a rollout must be there
-- for its path to be whole. `outliving` and `overlap` as of _waits_of.
CREATE MACRO rollout_path_of(ids, outliving := 'clip', overlap := 0) AS TABLE (
    SELECT
        section.run_id,
        section.rollout_id,
        span.trace_id,
        span.span_id,
        span.occurrence,
        section.start_time AS start_time_unix_nano,
        section.end_time AS end_time_unix_nano,
        section.end_time - section.start_time AS duration_ns,
        section.is_assumed AS assumed,
        section.node
    FROM _rollout_sections_of(ids, outliving, overlap) AS section
    LEFT JOIN spans AS span ON span.rowid = section.node
);

COMMENT ON MACRO TABLE rollout_path_of IS 'One row is a section of the critical path of a rollout, all of whose traces are in the list `ids`; of all rollouts when it is null.';

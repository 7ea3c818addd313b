-- One row is a section of a critical path: a stretch of time in which the work of one span decided
-- when its root ended. Of the traces in the list `ids`, or of all when it is null.
--
-- The sections of a root lie end to end from its start to its end, and their durations add up to its
-- own; _waits_of says whose they are, and what `outliving` and `overlap` mean.
CREATE MACRO critical_path_of(ids, outliving := 'clip', overlap := 0) AS TABLE (
    SELECT
        span.trace_id,
        root.span_id AS root_span_id,
        root.occurrence AS root_occurrence,
        span.span_id,
        span.occurrence,
        section.start_time AS start_time_unix_nano,
        section.end_time AS end_time_unix_nano,
        section.end_time - section.start_time AS duration_ns,
        section.is_assumed AS assumed,
        section.node,
        section.root AS root_node
    FROM _sections_of(ids, 'trace', outliving, overlap) AS section
    JOIN spans AS span ON span.rowid = section.node
    JOIN spans AS root ON root.rowid = section.root
);

COMMENT ON MACRO TABLE critical_path_of IS 'One row is a section of a critical path: a stretch of time in which the work of one span decided when its root ended; of the traces in the list `ids`, or of all when it is null.';

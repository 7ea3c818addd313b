-- One row is a section of the critical path of a root: a stretch of time in which the work of one
-- span decided when that root ended.
CREATE VIEW critical_path AS
SELECT
    trace_id,
    root_span_id,
    root_occurrence,
    span_id,
    occurrence,
    start_time_unix_nano,
    end_time_unix_nano,
    duration_ns,
    assumed
FROM critical_path_of(NULL);

COMMENT ON VIEW critical_path IS 'One row is a section of the critical path of a root: a stretch of time in which the work of one span decided when that root ended. The sections of a root lie end to end; critical_path_of(ids) gives those of a list of trace ids faster.';
COMMENT ON COLUMN critical_path.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN critical_path.root_span_id IS 'The span whose end is explained: one without a parent in the input.';
COMMENT ON COLUMN critical_path.root_occurrence IS 'occurrence of that span in spans.';
COMMENT ON COLUMN critical_path.span_id IS 'The span that was worked in.';
COMMENT ON COLUMN critical_path.occurrence IS 'occurrence of that span in spans.';
COMMENT ON COLUMN critical_path.start_time_unix_nano IS 'Start of the section, ns since 1970.';
COMMENT ON COLUMN critical_path.end_time_unix_nano IS 'End of the section, ns since 1970.';
COMMENT ON COLUMN critical_path.duration_ns IS 'End less start, ns; summed up over a span: how much of the root''s time it is to blame for.';
COMMENT ON COLUMN critical_path.assumed IS 'Children of the span, or of one above it, overlap, and nothing says which was waited for: the one that ended last is taken.';

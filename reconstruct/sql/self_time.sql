-- One row is a finished span and the time in it that none of its children covers.
CREATE VIEW self_time AS
SELECT
    span.trace_id,
    span.span_id,
    span.occurrence,
    own.self_time_ns,
    own.self_excluding_detached_ns
FROM _self_times AS own
JOIN spans AS span ON span.rowid = own.node;

COMMENT ON VIEW self_time IS 'One row is a finished span and the time in it that none of its children covers; self_time_of(ids) gives that of a list of trace ids faster.';
COMMENT ON COLUMN self_time.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN self_time.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN self_time.occurrence IS 'As in spans.';
COMMENT ON COLUMN self_time.self_time_ns IS 'Duration less the time that children cover, ns; overlaps count once, children end where the parent does.';
COMMENT ON COLUMN self_time.self_excluding_detached_ns IS 'Duration less the time that other children than detached ones cover, ns: a consumer of a producer is detached, and what ends after its parent though one process wrote both.';

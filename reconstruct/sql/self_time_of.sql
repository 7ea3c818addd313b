-- One row is a finished span and the time in it that none of its children covers; of the traces in
-- the list `ids`, or of all when it is null.
CREATE MACRO self_time_of(ids) AS TABLE (
    SELECT
        own.node,
        span.trace_id,
        span.span_id,
        span.occurrence,
        own.self_time_ns,
        own.self_excluding_detached_ns
    FROM _self_times_of(ids) AS own
    JOIN spans AS span ON span.rowid = own.node
);

COMMENT ON MACRO TABLE self_time_of IS 'One row is a finished span and the time in it that none of its children covers; of the traces in the list `ids`, or of all when it is null.';

-- One row is a span whose parent is in no line under the id that it names, and the span that has this
-- id written in another way.
--
-- Ids are joined as W3C writes them: lower case, 0x cut off, trace ids of 64 bits filled up with
-- zeros. What is left are trace ids of which one side writes all 128 bits and the other the last
-- 64, and span ids that one side writes as decimal numbers.
CREATE VIEW _respelled_parents AS
WITH orphan AS MATERIALIZED (
    SELECT
        span.rowid AS node,
        span.trace_id,
        span.span_id,
        span.parent_span_id,
        span.start_time_unix_nano
    FROM _edges AS edge
    JOIN spans AS span ON span.rowid = edge.node
    WHERE edge.orphan
)
SELECT
    orphan.node,
    parent.rowid AS other,
    orphan.trace_id || orphan.span_id AS ids,
    parent.trace_id || parent.span_id AS other_ids,
    orphan.start_time_unix_nano - parent.start_time_unix_nano AS after_ns,
    'its parent''s id, in the trace whose last 64 bits are the same' AS ground
FROM orphan
JOIN spans AS parent
    ON parent.span_id = orphan.parent_span_id
    AND parent.trace_id[17:] = orphan.trace_id[17:]
    AND parent.trace_id <> orphan.trace_id
    AND parent.occurrence = 1
WHERE repeat('0', 16) IN (parent.trace_id[:16], orphan.trace_id[:16])
UNION ALL
SELECT
    orphan.node,
    parent.rowid,
    orphan.trace_id || orphan.span_id,
    parent.trace_id || parent.span_id,
    orphan.start_time_unix_nano - parent.start_time_unix_nano,
    'its parent''s id, read as a decimal number'
FROM orphan
JOIN spans AS parent
    ON parent.trace_id = orphan.trace_id
    AND parent.span_id = lower(lpad(to_hex(try_cast(orphan.parent_span_id AS UBIGINT)), 16, '0'))
    AND parent.occurrence = 1
    AND parent.rowid <> orphan.node;

COMMENT ON VIEW _respelled_parents IS 'One row is a span whose parent is in no line under the id that it names, and the span that has this id written in another way.';

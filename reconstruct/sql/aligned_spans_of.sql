-- One row is a span and its times as its reference clock would have had them, an estimate; of the
-- traces in the list `ids`, or of all when it is null.
--
-- Start and end move together, so durations stay; spans of one clock move together while its offset
-- stays. The times in spans are as they were written.
CREATE MACRO aligned_spans_of(ids) AS TABLE (
    WITH
    reading AS (
        SELECT
            edge.node,
            line.owner,
            span.trace_id,
            span.span_id,
            span.occurrence,
            span.start_time_unix_nano,
            span.end_time_unix_nano
        FROM _edges AS edge
        JOIN _span_lines AS line ON line.rowid = edge.node
        JOIN spans AS span ON span.rowid = edge.node
        WHERE ids IS NULL OR edge.trace_id IN (SELECT unnest(ids))
    ),
    stretch AS (
        SELECT
            reader.owner,
            moved.clock,
            moved.reference_clock,
            moved.offset_ns,
            moved.uncertainty_ns,
            coalesce(moved.from_unix_nano, -9223372036854775807) AS from_time
        FROM _owner_clocks AS reader
        JOIN clock_offsets AS moved USING (clock)
    )
    SELECT
        reading.node,
        reading.trace_id,
        reading.span_id,
        reading.occurrence,
        stretch.clock,
        stretch.reference_clock,
        stretch.offset_ns,
        stretch.uncertainty_ns,
        reading.start_time_unix_nano - stretch.offset_ns AS start_adj_unix_nano,
        reading.end_time_unix_nano - stretch.offset_ns AS end_adj_unix_nano
    FROM reading
    ASOF JOIN stretch
        ON stretch.owner = reading.owner
        AND reading.start_time_unix_nano >= stretch.from_time
);

COMMENT ON MACRO TABLE aligned_spans_of IS 'One row is a span and its times as its reference clock would have had them, an estimate; of the traces in the list `ids`, or of all when it is null.';

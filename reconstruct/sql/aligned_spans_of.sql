-- One row is a span and its times as its reference clock would have had them, an estimate; of the
-- traces in the list `ids`, or of all when it is null.
--
-- Start and end move together, so durations stay; spans of one clock move together while its offset
-- stays. The times in spans are as they were written.
CREATE MACRO aligned_spans_of(ids) AS TABLE (
    SELECT
        span.rowid AS node,
        span.trace_id,
        span.span_id,
        span.occurrence,
        moved.clock,
        moved.reference_clock,
        moved.offset_ns,
        moved.uncertainty_ns,
        span.start_time_unix_nano - moved.offset_ns AS start_adj_unix_nano,
        span.end_time_unix_nano - moved.offset_ns AS end_adj_unix_nano
    FROM spans AS span
    JOIN _span_lines AS line ON line.rowid = span.rowid
    JOIN _owner_clocks AS reader USING (owner)
    JOIN clock_offsets AS moved
        ON moved.clock = reader.clock
        AND coalesce(span.start_time_unix_nano >= moved.from_unix_nano, TRUE)
        AND coalesce(span.start_time_unix_nano < moved.until_unix_nano, TRUE)
    WHERE ids IS NULL OR span.trace_id IN (SELECT unnest(ids))
);

COMMENT ON MACRO TABLE aligned_spans_of IS 'One row is a span and its times as its reference clock would have had them, an estimate; of the traces in the list `ids`, or of all when it is null.';

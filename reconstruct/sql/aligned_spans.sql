-- One row is a span and its times as its reference clock would have had them: an estimate.
CREATE VIEW aligned_spans AS
SELECT
    trace_id,
    span_id,
    occurrence,
    clock,
    reference_clock,
    offset_ns,
    uncertainty_ns,
    start_adj_unix_nano,
    end_adj_unix_nano
FROM aligned_spans_of(NULL);

COMMENT ON VIEW aligned_spans IS 'One row is a span and its times as its reference clock would have had them: an estimate. aligned_spans_of(ids) gives those of a list of trace ids faster.';
COMMENT ON COLUMN aligned_spans.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN aligned_spans.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN aligned_spans.occurrence IS 'As in spans.';
COMMENT ON COLUMN aligned_spans.clock IS 'The clock that timed it: key of clocks.';
COMMENT ON COLUMN aligned_spans.reference_clock IS 'The clock that it is aligned with, as in clock_offsets.';
COMMENT ON COLUMN aligned_spans.offset_ns IS 'How far its clock was ahead of the reference when it began, ns; taken off both of its times.';
COMMENT ON COLUMN aligned_spans.uncertainty_ns IS 'How far that can be off either way, ns; null where nothing is known of the clock.';
COMMENT ON COLUMN aligned_spans.start_adj_unix_nano IS 'Start less the offset, ns since 1970.';
COMMENT ON COLUMN aligned_spans.end_adj_unix_nano IS 'End less the offset, ns since 1970; null while unfinished.';

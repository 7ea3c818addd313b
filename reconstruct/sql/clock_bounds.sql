-- One row is a call between two clocks, and how far its server's clock can be ahead of its client's.
CREATE VIEW clock_bounds AS
SELECT
    client.trace_id,
    client.span_id AS client_span_id,
    server.span_id AS server_span_id,
    server.occurrence AS server_occurrence,
    client_clock.clock AS client_clock,
    server_clock.clock AS server_clock,
    bound.lower_ns,
    bound.upper_ns,
    bound.excluded
FROM _clock_bounds_of(NULL) AS bound
JOIN spans AS client ON client.rowid = bound.client_node
JOIN spans AS server ON server.rowid = bound.server_node
JOIN _clock_names AS client_clock ON client_clock.number = bound.client_number
JOIN _clock_names AS server_clock ON server_clock.number = bound.server_number;

COMMENT ON VIEW clock_bounds IS 'One row is a call between two clocks, and how far its server''s clock can be ahead of its client''s.';
COMMENT ON COLUMN clock_bounds.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN clock_bounds.client_span_id IS 'The CLIENT span.';
COMMENT ON COLUMN clock_bounds.server_span_id IS 'The SERVER span under it, with at most INTERNAL spans between.';
COMMENT ON COLUMN clock_bounds.server_occurrence IS 'occurrence of that span in spans.';
COMMENT ON COLUMN clock_bounds.client_clock IS 'Clock of the CLIENT span: key of clocks.';
COMMENT ON COLUMN clock_bounds.server_clock IS 'Clock of the SERVER span: key of clocks.';
COMMENT ON COLUMN clock_bounds.lower_ns IS 'The server''s clock is ahead by this at least, ns: its end less the client''s end, less what the times are rounded to.';
COMMENT ON COLUMN clock_bounds.upper_ns IS 'The server''s clock is ahead by this at most, ns: its start less the client''s start, plus what the times are rounded to.';
COMMENT ON COLUMN clock_bounds.excluded IS 'Why it says nothing of the clocks; outlives: the server took longer than its client; given up: the client alone failed, while the server may have gone on; null: it counts.';

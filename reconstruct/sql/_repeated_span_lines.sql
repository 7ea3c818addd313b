-- One row is a span line whose trace and span id others have, too (or, hardly ever, the same hash):
-- few lines, among which copies, starts of spans that ended, and different contents are looked for.
CREATE TABLE _repeated_span_lines AS
SELECT
    line.rowid AS row_id,
    line.trace_id,
    line.span_id,
    line.record_type
FROM _span_lines AS line
SEMI JOIN (
    SELECT hash(trace_id, span_id) AS id
    FROM _span_lines
    GROUP BY id
    HAVING count(*) > 1
) AS repeated ON repeated.id = hash(line.trace_id, line.span_id);

COMMENT ON TABLE _repeated_span_lines IS 'One row is a span line whose trace and span id others have, too, or the same hash.';

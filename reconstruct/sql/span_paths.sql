-- One row is a span and its call path.
CREATE VIEW span_paths AS
SELECT
    span.trace_id,
    span.span_id,
    span.occurrence,
    printf('%016x', path.call_path) AS call_path
FROM _span_paths AS path
JOIN spans AS span ON span.rowid = path.node;

COMMENT ON VIEW span_paths IS 'One row is a span and its call path.';
COMMENT ON COLUMN span_paths.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN span_paths.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN span_paths.occurrence IS 'As in spans.';
COMMENT ON COLUMN span_paths.call_path IS 'Key of call_paths: equal for spans whose services and names are the same up to the topmost span of their rollout, or of their trace.';

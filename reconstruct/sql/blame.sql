-- One row is a span on the critical path of its root, and how much of the root's time it is to
-- blame for.
CREATE VIEW blame AS
SELECT
    span.trace_id,
    span.span_id,
    span.occurrence,
    root.span_id AS root_span_id,
    root.occurrence AS root_occurrence,
    blamed.blame_ns,
    blamed.assumed
FROM _blames AS blamed
JOIN spans AS span ON span.rowid = blamed.node
JOIN spans AS root ON root.rowid = blamed.root_node;

COMMENT ON VIEW blame IS 'One row is a span on the critical path of its root, and how much of the root''s time it is to blame for.';
COMMENT ON COLUMN blame.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN blame.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN blame.occurrence IS 'As in spans.';
COMMENT ON COLUMN blame.root_span_id IS 'The span whose end is explained: one without a parent in the input.';
COMMENT ON COLUMN blame.root_occurrence IS 'occurrence of that span in spans.';
COMMENT ON COLUMN blame.blame_ns IS 'Time on the critical path, ns; over all spans of a root it adds up to the root''s duration.';
COMMENT ON COLUMN blame.assumed IS 'As in critical_path.';

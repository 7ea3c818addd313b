-- One row is a span in its tree.
CREATE VIEW span_tree AS
SELECT
    trace_id,
    span_id,
    occurrence,
    depth,
    path,
    subtree_span_count,
    orphan,
    cycle
FROM span_tree_of(NULL);

COMMENT ON VIEW span_tree IS 'One row is a span in its tree; span_tree_of(ids) gives that of a list of trace ids faster.';
COMMENT ON COLUMN span_tree.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN span_tree.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN span_tree.occurrence IS 'As in spans.';
COMMENT ON COLUMN span_tree.depth IS 'Parents above it that are in the input; 0 is a root, an orphan, or where a cycle was cut.';
COMMENT ON COLUMN span_tree.path IS 'Place in the trace, from 0: ordered by it, parents stand before children and siblings by start; orphans of one missing parent stand together, cycles last.';
COMMENT ON COLUMN span_tree.subtree_span_count IS 'Spans in its subtree, itself too.';
COMMENT ON COLUMN span_tree.orphan IS 'It names a parent that is not in the input.';
COMMENT ON COLUMN span_tree.cycle IS 'It is its own ancestor.';

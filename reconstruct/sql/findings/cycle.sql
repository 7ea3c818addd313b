-- One row is a cycle of parents, named by the span above which it was cut.
CREATE VIEW _finding_cycle AS
SELECT
    'cycle' AS code,
    'error' AS severity,
    'cycle' AS cause,
    1 AS confidence,
    span.run_id,
    span.trace_id,
    span.span_id,
    span.file,
    span.line,
    _span_label(span.name, span.service_name) AS place,
    _span_label(span.name, span.service_name) || CASE
        WHEN span.span_id = span.parent_span_id THEN ' is its own parent'
        ELSE ' is its own ancestor'
    END AS message,
    'the writer mixed up ids; the tree is shown as if this span were a root' AS hint,
    json_object('parent_span_id', span.parent_span_id) AS evidence
FROM _edges AS edge
JOIN spans AS span ON span.rowid = edge.node
WHERE edge.is_cut;

COMMENT ON VIEW _finding_cycle IS 'One row is a cycle of parents, named by the span above which it was cut.';

-- One row is a span whose times do not lie within its parent's, by more than 1 ms.
--
-- In one process, starting before the parent is an error of the writer, ending after it is detached
-- work: a note. Requests are left out there, since a server may finish after its caller has all it
-- wants. Between processes only a child that starts before its parent is told, as a note: no
-- request does that, so the clocks differ.
CREATE VIEW _finding_outside_parent AS
WITH outside AS (
    SELECT
        child.run_id,
        child.trace_id,
        child.span_id,
        child.file,
        child.line,
        _span_label(child.name, child.service_name) AS child_label,
        _span_label(parent.name, parent.service_name) AS parent_label,
        child.instance = parent.instance AS is_same_process,
        parent.start_time_unix_nano - child.start_time_unix_nano AS early_ns,
        CASE
            WHEN child.instance = parent.instance AND child.kind NOT IN ('SERVER', 'CONSUMER')
                THEN child.end_time_unix_nano - parent.end_time_unix_nano
        END AS late_ns
    FROM _edges AS edge
    JOIN spans AS child ON child.rowid = edge.node
    JOIN spans AS parent ON parent.rowid = edge.parent
)
SELECT
    'outside_parent' AS code,
    CASE WHEN early_ns > 1000000 AND is_same_process THEN 'warning' ELSE 'note' END AS severity,
    run_id,
    trace_id,
    span_id,
    file,
    line,
    child_label || ' under ' || parent_label AS place,
    child_label || CASE
        WHEN early_ns > 1000000 THEN ' starts ' || _seconds(early_ns) || ' before'
        ELSE ' ends ' || _seconds(late_ns) || ' after'
    END || ' its parent ' || parent_label AS message,
    CASE
        WHEN early_ns <= 1000000 THEN 'work that goes on after its parent has ended; a link instead of a parent says so'
        WHEN is_same_process THEN 'the writer gave the span a start of its own, or its clock was set back'
        ELSE 'the clocks of the two processes differ; `reconstruct clocks` says by how much'
    END AS hint,
    json_object(
        'early_ns', greatest(early_ns, 0),
        'late_ns', greatest(late_ns, 0),
        'same_process', is_same_process
    ) AS evidence
FROM outside
WHERE early_ns > 1000000 OR late_ns > 1000000;

COMMENT ON VIEW _finding_outside_parent IS 'One row is a span whose times do not lie within its parent''s, by more than 1 ms.';

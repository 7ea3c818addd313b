-- One row is a span whose times do not lie within its parent's, by more than 1 ms, by one clock.
--
-- In one process, starting before the parent is an error of the writer, ending after it is detached
-- work: a note. Requests are left out there, since a server may finish after its caller has all it
-- wants. Between processes of one host only a child that starts before its parent is told, as a
-- note; between hosts it is clock_skew.
CREATE VIEW _finding_outside_parent AS
WITH outside AS (
    SELECT
        run_id,
        trace_id,
        span_id,
        file,
        line,
        child_label,
        parent_label,
        is_same_process,
        early_ns,
        CASE WHEN is_same_process AND kind NOT IN ('SERVER', 'CONSUMER') THEN late_ns END AS late_ns
    FROM _outside_spans
    WHERE clock = parent_clock
)
SELECT
    'outside_parent' AS code,
    CASE WHEN early_ns > 1000000 AND is_same_process THEN 'warning' ELSE 'note' END AS severity,
    CASE WHEN early_ns > 1000000 THEN 'clock' END AS cause,
    CASE WHEN early_ns > 1000000 THEN 0.7 END AS confidence,
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
        ELSE 'the clock of their host was set after one of the two had started, or the start is not by it'
    END AS hint,
    json_object(
        'early_ns', greatest(early_ns, 0),
        'late_ns', greatest(late_ns, 0),
        'same_process', is_same_process
    ) AS evidence
FROM outside
WHERE early_ns > 1000000 OR late_ns > 1000000;

COMMENT ON VIEW _finding_outside_parent IS 'One row is a span whose times do not lie within its parent''s, by more than 1 ms, by one clock.';

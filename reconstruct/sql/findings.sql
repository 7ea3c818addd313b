-- One row is a finding: something broken, or worth a look, and where. One file per code is in findings/.
CREATE VIEW findings AS
SELECT
    code,
    severity,
    cause,
    confidence::DOUBLE AS confidence,
    run_id,
    trace_id,
    span_id,
    file,
    line,
    place,
    message,
    hint,
    evidence
FROM (
    FROM _finding_orphan
    UNION ALL BY NAME
    FROM _finding_split_trace
    UNION ALL BY NAME
    FROM _finding_missing_root
    UNION ALL BY NAME
    FROM _finding_cycle
    UNION ALL BY NAME
    FROM _finding_unfinished
    UNION ALL BY NAME
    FROM _finding_stuck
    UNION ALL BY NAME
    FROM _finding_process_died
    UNION ALL BY NAME
    FROM _finding_errors
    UNION ALL BY NAME
    FROM _finding_slow_instance
    UNION ALL BY NAME
    FROM _finding_stalled_event_loop
    UNION ALL BY NAME
    FROM _finding_duplicate_span
    UNION ALL BY NAME
    FROM _finding_id_collision
    UNION ALL BY NAME
    FROM _finding_negative_duration
    UNION ALL BY NAME
    FROM _finding_outside_parent
    UNION ALL BY NAME
    FROM _finding_lost_lines
    UNION ALL BY NAME
    FROM _finding_torn_lines
    UNION ALL BY NAME
    FROM _finding_deduplicated
    UNION ALL BY NAME
    FROM _finding_js_console
    UNION ALL BY NAME
    FROM _finding_damaged_file
    UNION ALL BY NAME
    FROM _finding_shared_id
    UNION ALL BY NAME
    FROM _finding_clock_skew
    UNION ALL BY NAME
    FROM _finding_invalid_id
    UNION ALL BY NAME
    FROM _finding_unanswered
    UNION ALL BY NAME
    FROM _finding_mixed_runs
    UNION ALL BY NAME
    FROM _finding_many_names
);

COMMENT ON VIEW findings IS 'One row is a finding: something broken, or worth a look, and where.';
COMMENT ON COLUMN findings.code IS 'Kind of finding: the name of its file in findings/.';
COMMENT ON COLUMN findings.severity IS 'error: something is broken or lost; warning: something went wrong in the run; note: worth knowing, nothing is wrong.';
COMMENT ON COLUMN findings.cause IS 'Why, in a word, where that can be told; the README lists them.';
COMMENT ON COLUMN findings.confidence IS 'How sure the cause is, 0 to 1, by its evidence: 1 the lines themselves say so, 0.8 and 0.9 several facts agree, 0.5 to 0.7 one speaks for it and none against it, below that nothing better is known. An estimate.';
COMMENT ON COLUMN findings.run_id IS 'nemo.run.id, where there is one.';
COMMENT ON COLUMN findings.trace_id IS 'Trace it was found in; null when it concerns no single one.';
COMMENT ON COLUMN findings.span_id IS 'Span it was found at.';
COMMENT ON COLUMN findings.file IS 'File of the evidence.';
COMMENT ON COLUMN findings.line IS 'Physical line of the evidence.';
COMMENT ON COLUMN findings.place IS 'What it is about in few words: findings of one code and place are one to a person.';
COMMENT ON COLUMN findings.message IS 'What, where: one line.';
COMMENT ON COLUMN findings.hint IS 'What to do.';
COMMENT ON COLUMN findings.evidence IS 'JSON object: the numbers behind it; durations in ns.';

-- One row is several runs in the inputs, a note, or two runs that have a trace in common.
CREATE VIEW _finding_mixed_runs AS
WITH
run AS (
    SELECT
        run_id,
        count(*) AS processes,
        min(first_time_unix_nano) AS first_time_unix_nano
    FROM instances
    WHERE run_id IS NOT NULL
    GROUP BY run_id
),
shared_trace AS (
    SELECT
        span.trace_id,
        min(span.run_id) AS run_id,
        max(span.run_id) AS other_run_id,
        min((span.start_time_unix_nano, span.span_id, span.file, span.line)) AS first_span
    FROM spans AS span
    SEMI JOIN (
        SELECT trace_id
        FROM traces
        WHERE run_id IS NULL
    ) AS undecided USING (trace_id)
    WHERE span.run_id IS NOT NULL
    GROUP BY span.trace_id
    HAVING min(span.run_id) < max(span.run_id)
)
SELECT
    'mixed_runs' AS code,
    'note' AS severity,
    'several_runs' AS cause,
    1 AS confidence,
    NULL::VARCHAR AS run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    NULL::VARCHAR AS file,
    NULL::BIGINT AS line,
    count(*) || ' runs' AS place,
    'the inputs hold ' || count(*) || ' runs: '
        || array_to_string(list(run_id ORDER BY first_time_unix_nano, run_id)[:5], ', ')
        || CASE WHEN count(*) > 5 THEN ' …' ELSE '' END AS message,
    'what is counted is counted over all of them; --run chooses one' AS hint,
    json_object('runs', list(run_id ORDER BY first_time_unix_nano, run_id)[:100]) AS evidence
FROM run
HAVING count(*) > 1
UNION ALL
SELECT
    'mixed_runs',
    'warning',
    'trace_in_two_runs',
    0.9,
    NULL,
    arg_min(trace_id, first_span),
    arg_min(first_span[2], first_span),
    arg_min(first_span[3], first_span),
    arg_min(first_span[4], first_span),
    run_id || ' and ' || other_run_id,
    count(*) || CASE WHEN count(*) = 1 THEN ' trace has' ELSE ' traces have' END
        || ' spans of run ' || run_id || ' and of run ' || other_run_id,
    'a server outlived its run, or its processes were given different run ids: restart it with the run, or set NEMO_GYM_OTEL_RUN_ID for all',
    json_object('traces', count(*), 'runs', [run_id, other_run_id])
FROM shared_trace
GROUP BY run_id, other_run_id;

COMMENT ON VIEW _finding_mixed_runs IS 'One row is several runs in the inputs, or two runs that have a trace in common.';

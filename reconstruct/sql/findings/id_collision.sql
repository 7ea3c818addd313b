-- One row is a span id that different records of a trace share.
CREATE VIEW _finding_id_collision AS
SELECT
    'id_collision' AS code,
    'error' AS severity,
    CASE WHEN count(DISTINCT instance) > 1 THEN 'fork_shared_ids' ELSE 'id_reused' END AS cause,
    CASE WHEN count(DISTINCT instance) > 1 THEN 0.8 ELSE 0.6 END AS confidence,
    min(run_id) AS run_id,
    trace_id,
    span_id,
    arg_max(file, occurrence) AS file,
    arg_max(line, occurrence) AS line,
    arg_max(_span_label(name, service_name), occurrence) AS place,
    'span id ' || span_id || ' belongs to ' || count(*) || ' different spans: '
        || string_agg(DISTINCT _span_label(name, service_name), ', ' ORDER BY _span_label(name, service_name)) AS message,
    'all are kept, children stand under the first; ' || CASE
        WHEN count(DISTINCT instance) > 1
            THEN 'processes go on with the same random state after a fork: seed ids anew in each, as gymlog does'
        ELSE 'one process gave an id twice: a span was written again with changes, or ids were copied'
    END AS hint,
    json_object('places', list(file || ':' || line ORDER BY occurrence)) AS evidence
FROM spans
GROUP BY trace_id, span_id
HAVING max(occurrence) > 1;

COMMENT ON VIEW _finding_id_collision IS 'One row is a span id that different records of a trace share.';

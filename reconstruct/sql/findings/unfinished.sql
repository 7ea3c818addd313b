-- One row is a span that began and has no end of its own.
--
-- lost: its process stopped or died, an error. open: its process may still live, a note. Ended by
-- a clean shutdown because it was still open: a warning.
CREATE VIEW _finding_unfinished AS
SELECT
    'unfinished' AS code,
    CASE
        WHEN span.state = 'lost' THEN 'error'
        WHEN span.state = 'open' THEN 'note'
        ELSE 'warning'
    END AS severity,
    CASE
        WHEN span.state = 'lost' AND owner.state = 'dead' THEN 'process_died'
        WHEN span.state = 'open' THEN 'still_running'
        ELSE 'process_stopped'
    END AS cause,
    CASE WHEN span.state = 'open' THEN 0.8 ELSE 0.9 END AS confidence,
    span.run_id,
    span.trace_id,
    span.span_id,
    span.file,
    span.line,
    _span_label(span.name, span.service_name) AS place,
    _span_label(span.name, span.service_name)
        || coalesce(', rollout ' || span.rollout_id, '')
        || CASE
            WHEN span.state = 'lost' THEN ' was open when '
            WHEN span.state = 'open' THEN ' is open in '
            ELSE ' was ended by the shutdown of '
        END
        || _instance_label(span.service_name, span.service_instance_id, span.process_pid)
        || CASE
            WHEN span.state = 'lost' AND owner.state = 'stopped' THEN ', stopped'
            WHEN span.state = 'lost' THEN ', died'
            ELSE ''
        END
        || ' after ' || _seconds(coalesce(span.open_ns, span.duration_ns)) AS message,
    CASE
        WHEN span.state = 'lost' THEN 'look at the last lines of this process; what it waited for is the open child, if there is one'
        WHEN span.state = 'open' THEN 'still running when the logs end'
        ELSE 'the process was stopped while this was running'
    END AS hint,
    json_object(
        'state', span.state,
        'instance', span.instance,
        'process_state', owner.state,
        'process_pid', span.process_pid,
        'last_sign_of_life_unix_nano', owner.last_time_unix_nano::VARCHAR,
        'open_ns', span.open_ns
    ) AS evidence
FROM _pending_spans AS pending
JOIN spans AS span ON span.rowid = pending.node
JOIN instances AS owner USING (instance)
WHERE pending.ending <> 'cancelled';

COMMENT ON VIEW _finding_unfinished IS 'One row is a span that began and has no end of its own.';

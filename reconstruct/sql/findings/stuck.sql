-- One row is a span that everything above it waits for, for much longer than its peers took: it has
-- no end of its own, nothing under it is unfinished, and it was waited for more than 5 s, and more
-- than 3 times as long as the longest finished one of its kind took while it is open, 1.5 times when
-- it was lost, cancelled or ended by a shutdown; without any to compare with, more than 60 s.
CREATE VIEW _finding_stuck AS
SELECT
    'stuck' AS code,
    'warning' AS severity,
    work.run_id,
    work.trace_id,
    work.span_id,
    work.file,
    work.line,
    _span_label(work.name, work.service_name) AS place,
    _span_label(work.name, work.service_name)
        || coalesce(', rollout ' || work.rollout_id, '')
        || ' kept its callers waiting for ' || _seconds(work.waited_ns)
        || coalesce(
            '; ' || nullif(work.finished_peers, 0) || ' others took at most '
            || _seconds(work.longest_peer_ns),
            ''
        ) AS message,
    'this is what the spans above it wait for: '
        || _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid)
        AS hint,
    json_object(
        'open_ns', work.waited_ns,
        'state', work.ending,
        'finished_peers', work.finished_peers,
        'longest_peer_ns', work.longest_peer_ns
    ) AS evidence
FROM stuck_work AS work
JOIN instances AS owner USING (instance)
WHERE work.is_innermost
    AND work.waited_ns > CASE
        WHEN work.finished_peers = 0 THEN 60000000000
        WHEN work.ending = 'open' THEN greatest(5000000000, 3 * work.longest_peer_ns)
        ELSE greatest(5000000000, work.longest_peer_ns * 3 // 2)
    END;

COMMENT ON VIEW _finding_stuck IS 'One row is a span that everything above it waits for, for much longer than its peers took.';

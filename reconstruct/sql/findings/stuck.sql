-- One row is a span that everything above it waits for: it has no end of its own, nothing under it
-- is unfinished, and it was waited for much longer than the finished ones of its name in its service
-- took: more than 5 s, and more than 3 times the longest of them while it is open, 1.5 times when it
-- was lost, cancelled or ended by a shutdown; without any to compare with, more than 60 s.
--
-- It was waited for as long as it is known to be open, or as an unfinished or cancelled span above
-- it in its trace was.
CREATE VIEW _finding_stuck AS
WITH
pending AS (
    SELECT
        rowid AS node,
        name,
        service_name,
        service_instance_id,
        process_pid,
        run_id,
        rollout_id,
        trace_id,
        span_id,
        file,
        line,
        state,
        start_time_unix_nano,
        start_time_unix_nano + coalesce(open_ns, duration_ns) AS seen_until_unix_nano
    FROM spans
    WHERE state <> 'finished'
        OR (attributes->>'gymlog.unfinished') = 'true'
        OR (attributes->>'gymlog.cancelled') = 'true'
),
deepest AS (
    SELECT
        node,
        name,
        service_name,
        service_instance_id,
        process_pid,
        run_id,
        rollout_id,
        trace_id,
        span_id,
        file,
        line,
        state,
        (
            SELECT max(above.seen_until_unix_nano)
            FROM pending AS above
            WHERE above.trace_id = pending.trace_id
                AND above.start_time_unix_nano <= pending.start_time_unix_nano
        ) - start_time_unix_nano AS open_ns
    FROM pending
    WHERE node NOT IN (
        SELECT edge.parent
        FROM pending AS child
        JOIN _edges AS edge ON edge.node = child.node
        WHERE edge.parent IS NOT NULL
    )
),
peers AS (
    SELECT
        name,
        service_name,
        count(*) AS spans,
        max(duration_ns) AS longest_ns
    FROM spans
    WHERE state = 'finished' AND rowid NOT IN (SELECT node FROM pending)
    GROUP BY name, service_name
)
SELECT
    'stuck' AS code,
    'warning' AS severity,
    deepest.run_id,
    deepest.trace_id,
    deepest.span_id,
    deepest.file,
    deepest.line,
    _span_label(deepest.name, deepest.service_name) AS place,
    _span_label(deepest.name, deepest.service_name)
        || coalesce(', rollout ' || deepest.rollout_id, '')
        || ' kept its callers waiting for ' || _seconds(deepest.open_ns)
        || coalesce(
            '; ' || peers.spans || ' others took at most ' || _seconds(peers.longest_ns),
            ''
        ) AS message,
    'this is what the spans above it wait for: '
        || _instance_label(deepest.service_name, deepest.service_instance_id, deepest.process_pid)
        AS hint,
    json_object(
        'open_ns', deepest.open_ns,
        'state', deepest.state,
        'finished_peers', coalesce(peers.spans, 0),
        'longest_peer_ns', peers.longest_ns
    ) AS evidence
FROM deepest
LEFT JOIN peers
    ON peers.name = deepest.name
    AND peers.service_name IS NOT DISTINCT FROM deepest.service_name
WHERE deepest.open_ns > CASE
    WHEN peers.spans IS NULL THEN 60000000000
    WHEN deepest.state = 'open' THEN greatest(5000000000, 3 * peers.longest_ns)
    ELSE greatest(5000000000, peers.longest_ns * 3 // 2)
END;

COMMENT ON VIEW _finding_stuck IS 'One row is a span that everything above it waits for, for much longer than its peers took.';

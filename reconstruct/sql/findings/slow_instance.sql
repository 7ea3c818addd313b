-- One row is a kind of span that one process does much slower than the other instances of its
-- service do: its median is at least 3 times, and at least 50 ms above, the median of theirs, its
-- lower quartile is above the upper quartile of each, and there are at least 5 spans in every one.
--
-- Self time is compared, so that waiting for a slow service does not make its callers look slow.
CREATE VIEW _finding_slow_instance AS
WITH
timed AS (
    SELECT
        span.name,
        span.kind,
        span.service_name,
        span.instance,
        span.host_name,
        span.run_id,
        own.self_time_ns
    FROM spans AS span
    JOIN _self_times AS own ON own.node = span.rowid
    WHERE span.kind <> 'CLIENT'
),
by_instance AS (
    SELECT
        name,
        service_name,
        run_id,
        instance,
        any_value(host_name) AS host_name,
        count(*) AS spans,
        quantile_disc(self_time_ns, 0.25) AS lower_quartile_ns,
        quantile_disc(self_time_ns, 0.5) AS median_ns,
        quantile_disc(self_time_ns, 0.75) AS upper_quartile_ns
    FROM timed
    GROUP BY name, service_name, run_id, instance
    HAVING count(*) >= 5
),
compared AS (
    SELECT
        slow.name,
        slow.service_name,
        slow.run_id,
        slow.instance,
        slow.host_name,
        slow.spans,
        slow.lower_quartile_ns,
        slow.median_ns,
        count(*) AS peers,
        sum(peer.spans)::BIGINT AS peer_spans,
        quantile_disc(peer.median_ns, 0.5) AS peer_median_ns,
        max(peer.upper_quartile_ns) AS peer_upper_quartile_ns
    FROM by_instance AS slow
    JOIN by_instance AS peer
        ON peer.name = slow.name
        AND peer.service_name IS NOT DISTINCT FROM slow.service_name
        AND peer.run_id IS NOT DISTINCT FROM slow.run_id
        AND peer.instance <> slow.instance
    GROUP BY ALL
)
SELECT
    'slow_instance' AS code,
    'warning' AS severity,
    slow.run_id,
    example.trace_id,
    example.span_id,
    example.file,
    example.line,
    _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid) AS place,
    _span_label(slow.name, slow.service_name) || ' takes ' || _seconds(slow.median_ns)
        || ' of its own at the median in '
        || _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid)
        || coalesce(', host ' || slow.host_name, '')
        || '; ' || slow.peers || CASE WHEN slow.peers = 1 THEN ' peer takes ' ELSE ' peers take ' END
        || _seconds(slow.peer_median_ns) AS message,
    'this process or its host is slow: other work on it, throttling, a failing disk' AS hint,
    json_object(
        'spans', slow.spans,
        'median_ns', slow.median_ns,
        'peers', slow.peers,
        'peer_spans', slow.peer_spans,
        'peer_median_ns', slow.peer_median_ns,
        'host_name', slow.host_name
    ) AS evidence
FROM compared AS slow
JOIN instances AS owner USING (instance)
JOIN LATERAL (
    SELECT
        arg_max(trace_id, (duration_ns, span_id)) AS trace_id,
        arg_max(span_id, (duration_ns, span_id)) AS span_id,
        arg_max(file, (duration_ns, span_id)) AS file,
        arg_max(line, (duration_ns, span_id)) AS line
    FROM spans
    WHERE spans.instance = slow.instance AND spans.name = slow.name
) AS example ON TRUE
WHERE slow.median_ns >= 3 * slow.peer_median_ns
    AND slow.median_ns - slow.peer_median_ns >= 50000000
    AND slow.lower_quartile_ns > slow.peer_upper_quartile_ns;

COMMENT ON VIEW _finding_slow_instance IS 'One row is a kind of span that one process does much slower than others do it.';

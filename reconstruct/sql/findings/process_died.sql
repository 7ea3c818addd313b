-- One row is a service instance that ended without a word (instances.state is dead).
CREATE VIEW _finding_process_died AS
WITH
open_span AS (
    SELECT
        instance,
        count(*) AS spans
    FROM spans
    WHERE state = 'lost'
    GROUP BY instance
)
SELECT
    'process_died' AS code,
    'error' AS severity,
    'process_died' AS cause,
    0.9 AS confidence,
    owner.run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    last_line.file,
    last_line.line,
    _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid) AS place,
    _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid)
        || ' died: no record of its end, silent for the last '
        || _seconds(owner.run_last_time_unix_nano - owner.last_time_unix_nano) || ' of the run, '
        || coalesce(open_span.spans, 0) || ' spans known to be open' AS message,
    'killed, out of memory, or crashed: look at the end of its log and at the kernel''s' AS hint,
    json_object(
        'instance', owner.instance,
        'process_pid', owner.process_pid,
        'host_name', owner.host_name,
        'last_sign_of_life_unix_nano', owner.last_time_unix_nano::VARCHAR,
        'lost_spans', coalesce(open_span.spans, 0)
    ) AS evidence
FROM instances AS owner
JOIN _last_lines AS last_line USING (instance)
LEFT JOIN open_span USING (instance)
WHERE owner.state = 'dead';

COMMENT ON VIEW _finding_process_died IS 'One row is a service instance that ended without a word (instances.state is dead).';

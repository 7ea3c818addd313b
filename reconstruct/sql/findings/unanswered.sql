-- One row is an address within the fleet that calls went to, and that no span answers at.
--
-- A path with a context in it (/ng-rollout/, /ng-trace/) is a gym's for sure: a warning. So may be an
-- address of a private network: a note, since what answers there may never have been instrumented.
-- A path that requests without a parent were asked for is left to split_trace.
CREATE VIEW _finding_unanswered AS
WITH
outside AS (
    SELECT
        client,
        server AS address
    FROM service_edges
    WHERE kind = 'external' AND unpaired_calls > 0
),
call AS (
    SELECT
        client.node,
        client.trace_id,
        client.span_id,
        client.service_name,
        client.run_id,
        client.file,
        client.line,
        client.start_time_unix_nano,
        outside.address,
        regexp_matches(client.url, '^[a-z]+://[^/]+/ng-(rollout|trace)/') AS is_of_gym,
        regexp_replace(client.url, '^[a-z]+://[^/]+(/ng-(rollout|trace)/[^/]+)*', '') AS path
    FROM _lone_clients AS client
    JOIN outside
        ON outside.client = client.service_name
        AND outside.address = _peer_address(client.attributes)
    WHERE client.status_code <> 'ERROR'
),
unanswered AS (
    SELECT
        service_name,
        run_id,
        address,
        bool_or(is_of_gym) AS is_of_gym,
        count(*) AS calls,
        min((start_time_unix_nano, span_id, trace_id, file, line)) AS first_call
    FROM call
    WHERE path NOT IN (
            SELECT _asked_path(span.name, span.attributes)
            FROM _lone_requests AS request
            JOIN spans AS span ON span.rowid = request.node
        )
    GROUP BY service_name, run_id, address
    HAVING bool_or(is_of_gym)
        OR regexp_matches(
            address,
            '^(127\.|10\.|192\.168\.|172\.(1[6-9]|2[0-9]|3[01])\.|\[(::1|f[cde])|[^.:]+(:[0-9]+)?$)'
        )
),
silent AS (
    SELECT
        min(service_name) AS name
    FROM instances
    WHERE process_records > 0
        AND server_name IS NOT NULL
        AND server_type IS DISTINCT FROM 'supervisor'
        AND service_name NOT IN (
            SELECT service_name
            FROM spans
            WHERE service_name IS NOT NULL
        )
),
text_file AS (
    SELECT
        file
    FROM _class_counts
    GROUP BY file
    HAVING bool_and(class IN ('text', 'blank')) AND bool_or(class = 'text')
),
suspect AS (
    SELECT
        (SELECT name FROM silent) AS service,
        (SELECT min(file) FROM text_file) AS file,
        (SELECT count(*) FROM text_file) AS files
)
SELECT
    'unanswered' AS code,
    CASE WHEN unanswered.is_of_gym THEN 'warning' ELSE 'note' END AS severity,
    CASE
        WHEN suspect.service IS NULL AND suspect.file IS NULL THEN 'file_missing'
        ELSE 'not_initialised'
    END AS cause,
    CASE
        WHEN NOT unanswered.is_of_gym THEN 0.5
        WHEN suspect.service IS NOT NULL THEN 0.8
        WHEN suspect.file IS NOT NULL THEN 0.6
        ELSE 0.7
    END AS confidence,
    unanswered.run_id,
    unanswered.first_call[3] AS trace_id,
    unanswered.first_call[2] AS span_id,
    unanswered.first_call[4] AS file,
    unanswered.first_call[5] AS line,
    coalesce(unanswered.service_name, 'unknown') || ' -> ' || unanswered.address AS place,
    unanswered.calls || CASE WHEN unanswered.calls = 1 THEN ' call of ' ELSE ' calls of ' END
        || coalesce(unanswered.service_name, 'an unknown service') || ' to ' || unanswered.address
        || CASE WHEN unanswered.calls = 1 THEN ' was' ELSE ' were' END
        || ' answered, but no span of what answers there is in the input' AS message,
    CASE
        WHEN suspect.service IS NOT NULL
            THEN suspect.service || ' writes no spans: turn its telemetry on, open its span group server'
        WHEN suspect.file IS NOT NULL
            THEN suspect.file || ' holds text alone: if that is its log, its telemetry was never turned on'
        ELSE 'its log is not among the inputs, or its telemetry was never turned on'
    END AS hint,
    json_object(
        'calls', unanswered.calls,
        'address', unanswered.address,
        'silent_service', suspect.service,
        'text_file', suspect.file,
        'text_files', suspect.files
    ) AS evidence
FROM unanswered
CROSS JOIN suspect;

COMMENT ON VIEW _finding_unanswered IS 'One row is an address within the fleet that calls went to, and that no span answers at.';

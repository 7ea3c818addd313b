-- One row is a SERVER or CONSUMER span without a parent, and what came with the request: its
-- traceparent header, where that was recorded, and the ids in it, empty when it is none.
--
-- Which these are is found first, without what came with them: mostly there are none.
CREATE VIEW _lone_requests AS
WITH
lone AS MATERIALIZED (
    SELECT rowid AS node
    FROM spans
    WHERE kind IN ('SERVER', 'CONSUMER')
        AND parent_span_id IS NULL
        AND rowid IN (
            SELECT node
            FROM _edges
            WHERE parent IS NULL
        )
)
SELECT
    rowid AS node,
    trace_id,
    span_id,
    instance,
    service_name,
    run_id,
    rollout_id,
    start_time_unix_nano,
    coalesce(end_time_unix_nano, start_time_unix_nano + open_ns) AS end_time_unix_nano,
    _asked_method(name, attributes) AS method,
    nullif(attributes->>'http.request.header.traceparent', '[]') AS traceparent,
    _traceparent_ids(attributes->>'http.request.header.traceparent') AS sent
FROM spans
WHERE rowid IN (
    SELECT node
    FROM lone
);

COMMENT ON VIEW _lone_requests IS 'One row is a SERVER or CONSUMER span without a parent, and what came with the request.';

-- One row is a CLIENT or PRODUCER span under which nothing is, and what it called.
--
-- Which these are is found first, without what they called: mostly there are few.
CREATE VIEW _lone_clients AS
WITH
lone AS MATERIALIZED (
    SELECT rowid AS node
    FROM spans
    WHERE kind IN ('CLIENT', 'PRODUCER')
        AND rowid NOT IN (
            SELECT parent
            FROM _edges
            WHERE parent IS NOT NULL
        )
)
SELECT
    client.rowid AS node,
    client.trace_id,
    client.span_id,
    client.instance,
    client.run_id,
    client.rollout_id,
    client.service_name,
    client.status_code,
    client.file,
    client.line,
    client.start_time_unix_nano,
    coalesce(client.end_time_unix_nano, client.start_time_unix_nano + client.open_ns)
        AS end_time_unix_nano,
    _called_method(client.name, client.attributes) AS method,
    _called_url(client.attributes) AS url,
    client.attributes
FROM spans AS client
WHERE client.rowid IN (
    SELECT node
    FROM lone
);

COMMENT ON VIEW _lone_clients IS 'One row is a CLIENT or PRODUCER span under which nothing is, and what it called.';

-- One row is a CLIENT or PRODUCER span under which nothing is, and what it called.
CREATE VIEW _lone_clients AS
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
WHERE client.kind IN ('CLIENT', 'PRODUCER')
    AND client.rowid NOT IN (
        SELECT parent
        FROM _edges
        WHERE parent IS NOT NULL
    );

COMMENT ON VIEW _lone_clients IS 'One row is a CLIENT or PRODUCER span under which nothing is, and what it called.';

-- One row is a span line whose parent is another than it says, because a server shared the id of
-- its caller's span and was given one of its own.
--
-- What ran in that server names the shared id as its parent: it goes below the server. Where
-- several servers share the id, it goes below the one of its own service. A server whose caller's
-- half was never written goes below the caller's parent.
CREATE VIEW _shared_parents AS
WITH
shared_span AS (
    SELECT DISTINCT
        trace_id,
        span_id,
        shared_span_id,
        parent_span_id,
        service_name
    FROM _shared_span_lines
),
server AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY trace_id, shared_span_id) AS servers
    FROM shared_span
)
SELECT
    child.rowid AS row_id,
    server.span_id AS parent_span_id
FROM _span_lines AS child
JOIN _owners AS owner USING (owner)
JOIN server
    ON server.trace_id = child.trace_id
    AND server.shared_span_id = child.parent_span_id
    AND server.span_id <> child.span_id
    AND (server.servers = 1 OR server.service_name = owner.service_name)
WHERE NOT EXISTS (
    SELECT 1
    FROM shared_span AS sibling
    WHERE sibling.trace_id = child.trace_id
        AND sibling.span_id = child.span_id
)
UNION ALL
SELECT
    half.rowid,
    server.parent_span_id
FROM _span_lines AS half
JOIN server USING (trace_id, span_id)
WHERE NOT EXISTS (
    SELECT 1
    FROM _span_lines AS client
    WHERE client.trace_id = server.trace_id
        AND client.span_id = server.shared_span_id
);

COMMENT ON VIEW _shared_parents IS 'One row is a span line whose parent is another than it says, because a server shared its caller''s span id.';

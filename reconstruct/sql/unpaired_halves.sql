-- One row is a half of a call whose other half is not in the input, and why, as far as can be told.
CREATE VIEW unpaired_halves AS
WITH
half AS (
    SELECT
        coalesce(client_node, server_node) AS node,
        CASE WHEN server_node IS NULL THEN 'client' ELSE 'server' END AS side,
        kind,
        client_failed,
        peer,
        regexp_replace(peer, ':[0-9]+$', '') AS peer_host,
        answering_owner
    FROM _attempts
    WHERE client_node IS NULL OR server_node IS NULL
),
host AS (
    SELECT unnest(['localhost', '127.0.0.1', '[::1]', '::1', '0.0.0.0']) AS name
    UNION
    SELECT host_name
    FROM instances
    WHERE host_name IS NOT NULL
),
silent_process AS (
    SELECT DISTINCT unnest([service_name, server_name]) AS name
    FROM instances
    ANTI JOIN (
        SELECT DISTINCT owner.instance
        FROM _span_lines AS line
        JOIN _owner_instances AS owner USING (owner)
    ) AS writer USING (instance)
)
SELECT
    span.trace_id,
    span.span_id,
    span.occurrence,
    span.run_id,
    half.side,
    span.name,
    span.service_name,
    span.service_instance_id,
    coalesce(answering.service_name, half.peer) AS peer,
    half.kind,
    CASE
        WHEN half.kind = 'entry'
            THEN 'it has no parent: called from outside, or without a trace context'
        WHEN half.kind = 'missing' THEN 'its parent span is not in the input'
        WHEN half.kind = 'database' THEN 'it called a database, which writes no spans here'
        WHEN span.state <> 'finished' THEN 'it has not ended'
        WHEN half.kind = 'rpc' AND half.client_failed
            THEN 'it failed, and may not have arrived'
        WHEN half.kind = 'rpc'
            THEN 'who answers at its address has no span of it: no trace context arrived, or lines are lost'
        WHEN half.kind = 'unpaired' THEN 'it names no address'
        WHEN half.peer IN (SELECT name FROM silent_process)
            THEN 'the process that it called wrote no spans'
        WHEN half.peer_host IN (SELECT name FROM host)
            THEN 'nobody in these logs answers at its address, on one of their hosts: a file is not given, or that process wrote no spans'
        ELSE 'nobody in these logs answers at its address: it is outside, or its file is not given'
    END AS reason,
    span.start_time_unix_nano,
    span.duration_ns,
    span.file,
    span.line
FROM half
JOIN spans AS span ON span.rowid = half.node
LEFT JOIN _owner_instances AS answering ON answering.owner = half.answering_owner;

COMMENT ON VIEW unpaired_halves IS 'One row is a half of a call whose other half is not in the input, and why, as far as can be told.';
COMMENT ON COLUMN unpaired_halves.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN unpaired_halves.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN unpaired_halves.occurrence IS 'As in spans.';
COMMENT ON COLUMN unpaired_halves.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN unpaired_halves.side IS 'The half that is there: client or server.';
COMMENT ON COLUMN unpaired_halves.name IS 'Name of the span.';
COMMENT ON COLUMN unpaired_halves.service_name IS 'service.name of its process.';
COMMENT ON COLUMN unpaired_halves.service_instance_id IS 'service.instance.id of its process.';
COMMENT ON COLUMN unpaired_halves.peer IS 'Of a client half: who answers at the address that it called, else the address, else its database; null when it names none.';
COMMENT ON COLUMN unpaired_halves.kind IS 'As in service_edges: rpc, database, external, unpaired, entry, missing.';
COMMENT ON COLUMN unpaired_halves.reason IS 'Why the other half is not there, as far as can be told: one of few sentences.';
COMMENT ON COLUMN unpaired_halves.start_time_unix_nano IS 'Start of the span, ns since 1970.';
COMMENT ON COLUMN unpaired_halves.duration_ns IS 'Its duration, ns; null while unfinished.';
COMMENT ON COLUMN unpaired_halves.file IS 'File the span lies in.';
COMMENT ON COLUMN unpaired_halves.line IS 'Physical line in that file, from 1.';

-- One row is a caller and a callee among service instances, as in instance_edges; of the traces in
-- the list `ids`, or of all when it is null.
CREATE MACRO instance_edges_of(ids) AS TABLE (
    SELECT
        client,
        client_instance,
        server,
        server_instance,
        kind,
        calls,
        failed_calls,
        attempts,
        failed_attempts,
        unpaired_calls,
        duration_p50_ns,
        duration_p95_ns,
        duration_p99_ns,
        gap_p50_ns,
        gap_p95_ns,
        unfinished_calls,
        negative_gaps
    FROM _call_edges(TRUE, ids)
);

COMMENT ON MACRO TABLE instance_edges_of IS 'One row is a caller and a callee among service instances, as in instance_edges; of the traces in the list `ids`, or of all when it is null.';

-- One row is a caller and a callee among services, as in service_edges; of the traces in the list
-- `ids`, or of all when it is null.
CREATE MACRO service_edges_of(ids) AS TABLE (
    SELECT
        client,
        server,
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
    FROM _call_edges(FALSE, ids)
);

COMMENT ON MACRO TABLE service_edges_of IS 'One row is a caller and a callee among services, as in service_edges; of the traces in the list `ids`, or of all when it is null.';

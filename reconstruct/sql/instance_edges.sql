-- One row is a caller and a callee among service instances: every call of one kind between them.
--
-- As service_edges, with the calls between instances of one service.
CREATE VIEW instance_edges AS
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
FROM _call_edges(TRUE, NULL);

COMMENT ON VIEW instance_edges IS 'One row is a caller and a callee among service instances, as in service_edges, with the calls between instances of one service; instance_edges_of(ids) counts those of a list of trace ids.';
COMMENT ON COLUMN instance_edges.client IS 'service.name of the caller; entry: outside the fleet; missing: its span is not in the input.';
COMMENT ON COLUMN instance_edges.client_instance IS 'Process of the caller: key of instances; null for entry and missing.';
COMMENT ON COLUMN instance_edges.server IS 'service.name of the callee, else its address, else unknown.';
COMMENT ON COLUMN instance_edges.server_instance IS 'Process of the callee: key of instances; null for what is no process of these logs, and where several answer at the address.';
COMMENT ON COLUMN instance_edges.kind IS 'rpc, queue, internal (a parent in another process, no client span), database, external (an address that nobody here answers at), unpaired (no address either), entry, missing.';
COMMENT ON COLUMN instance_edges.calls IS 'Calls: client spans, or server spans where there is no client.';
COMMENT ON COLUMN instance_edges.failed_calls IS 'Calls whose client span has status ERROR; their server span where there is no client.';
COMMENT ON COLUMN instance_edges.attempts IS 'Server spans; more than calls when requests were sent again.';
COMMENT ON COLUMN instance_edges.failed_attempts IS 'Server spans with status ERROR.';
COMMENT ON COLUMN instance_edges.unpaired_calls IS 'Calls of which only one half is in the input.';
COMMENT ON COLUMN instance_edges.duration_p50_ns IS 'Median duration of the finished calls, ns.';
COMMENT ON COLUMN instance_edges.duration_p95_ns IS '95 % of the finished calls are at most this long, ns.';
COMMENT ON COLUMN instance_edges.duration_p99_ns IS '99 % of the finished calls are at most this long, ns.';
COMMENT ON COLUMN instance_edges.gap_p50_ns IS 'Median time of a call that no attempt covers, ns: network and waiting; of a queue, consumer start less producer end.';
COMMENT ON COLUMN instance_edges.gap_p95_ns IS '95 % of these gaps are at most this long, ns.';
COMMENT ON COLUMN instance_edges.unfinished_calls IS 'Calls that have not ended, or whose end is not in the input; they have no duration.';
COMMENT ON COLUMN instance_edges.negative_gaps IS 'Calls whose gap is below 0: the server worked on when its client had ended; of a queue, the clocks of the two differ.';

-- One row is a span whose times do not lie within its parent's, by more than 1 ms: it starts before
-- its parent does (early), ends after it (late), or starts when it has ended (after).
--
-- A clock is a machine's from one start of it to the next, as far as its processes say.
CREATE VIEW _outside_spans AS
WITH outside AS (
    SELECT
        child.node,
        child.parent,
        parent.start_time_unix_nano - child.start_time_unix_nano AS early_ns,
        child.end_time_unix_nano - parent.end_time_unix_nano AS late_ns,
        child.start_time_unix_nano - parent.end_time_unix_nano AS after_ns
    FROM _edges AS child
    JOIN _edges AS parent ON parent.node = child.parent
    WHERE parent.start_time_unix_nano - child.start_time_unix_nano > 1000000
        OR child.end_time_unix_nano - parent.end_time_unix_nano > 1000000
        OR child.start_time_unix_nano - parent.end_time_unix_nano > 1000000
)
SELECT
    child.run_id,
    child.trace_id,
    child.span_id,
    child.kind,
    child.file,
    child.line,
    _span_label(child.name, child.service_name) AS child_label,
    _span_label(parent.name, parent.service_name) AS parent_label,
    child.instance = parent.instance AS is_same_process,
    coalesce(callee.boot_id, callee.host_name, callee.instance) AS clock,
    coalesce(caller.boot_id, caller.host_name, caller.instance) AS parent_clock,
    coalesce(
        callee.host_name,
        _instance_label(callee.service_name, callee.service_instance_id, callee.process_pid)
    ) AS host,
    coalesce(
        caller.host_name,
        _instance_label(caller.service_name, caller.service_instance_id, caller.process_pid)
    ) AS parent_host,
    parent.kind AS parent_kind,
    parent.status_code = 'ERROR'
        OR coalesce((parent.attributes->>'gymlog.cancelled') = 'true', FALSE) AS has_parent_failed,
    outside.early_ns,
    outside.late_ns,
    outside.after_ns
FROM outside
JOIN spans AS child ON child.rowid = outside.node
JOIN spans AS parent ON parent.rowid = outside.parent
JOIN instances AS callee ON callee.instance = child.instance
JOIN instances AS caller ON caller.instance = parent.instance;

COMMENT ON VIEW _outside_spans IS 'One row is a span whose times do not lie within its parent''s, by more than 1 ms.';

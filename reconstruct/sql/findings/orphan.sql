-- One row is a parent that its children name and no line has.
CREATE VIEW _finding_orphan AS
WITH
orphan AS (
    SELECT
        span.trace_id,
        span.parent_span_id,
        count(*) AS children,
        min_by(span.rowid, (span.start_time_unix_nano, span.span_id)) AS first_child
    FROM _edges AS edge
    JOIN spans AS span ON span.rowid = edge.node
    WHERE edge.orphan
    GROUP BY span.trace_id, span.parent_span_id
),
usual_caller AS (
    SELECT
        server,
        arg_max(client, (calls, client)) AS client
    FROM service_edges
    WHERE kind IN ('rpc', 'queue', 'internal')
    GROUP BY server
),
dead AS (
    SELECT
        service_name,
        run_id,
        min(_instance_label(service_name, service_instance_id, process_pid)) AS label
    FROM instances
    WHERE state = 'dead'
    GROUP BY service_name, run_id
),
unanswered AS (
    SELECT
        call.trace_id,
        call.service_name,
        _peer_address(call.attributes) AS address,
        call.start_time_unix_nano,
        coalesce(call.end_time_unix_nano, call.start_time_unix_nano + call.open_ns)
            AS end_time_unix_nano
    FROM spans AS call
    SEMI JOIN orphan ON orphan.trace_id = call.trace_id
    WHERE call.kind IN ('CLIENT', 'PRODUCER')
        AND call.rowid NOT IN (
            SELECT parent
            FROM _edges
            WHERE parent IS NOT NULL
        )
),
between_call AS (
    SELECT
        orphan.trace_id,
        orphan.parent_span_id,
        arg_max(
            call.service_name || ' called ' || call.address,
            (call.start_time_unix_nano, call.address)
        ) AS what
    FROM orphan
    JOIN spans AS child ON child.rowid = orphan.first_child
    JOIN unanswered AS call
        ON call.trace_id = orphan.trace_id
        AND call.start_time_unix_nano <= child.start_time_unix_nano
        AND call.end_time_unix_nano >= child.start_time_unix_nano
    GROUP BY orphan.trace_id, orphan.parent_span_id
),
torn AS (
    SELECT
        file,
        line,
        sample
    FROM _rejected_lines
    WHERE class IN ('torn', 'recovered', 'invalid')
),
torn_parent AS (
    SELECT
        orphan.trace_id,
        orphan.parent_span_id,
        min(torn.file || ':' || torn.line) AS place
    FROM orphan
    JOIN torn ON contains(torn.sample, orphan.parent_span_id)
    GROUP BY orphan.trace_id, orphan.parent_span_id
),
found AS (
    SELECT
        orphan.trace_id,
        orphan.parent_span_id,
        orphan.children,
        child.span_id,
        child.name,
        child.kind,
        child.service_name,
        child.run_id,
        child.file,
        child.line,
        torn_parent.place AS torn_place,
        caller.client AS usual_caller,
        between_call.what AS between_call,
        CASE
            WHEN child.flags & 256 = 256 THEN child.flags & 512 = 512
            ELSE child.kind IN ('SERVER', 'CONSUMER')
        END AS parent_is_remote
    FROM orphan
    JOIN spans AS child ON child.rowid = orphan.first_child
    LEFT JOIN usual_caller AS caller ON caller.server = child.service_name
    LEFT JOIN between_call
        ON between_call.trace_id = orphan.trace_id
        AND between_call.parent_span_id = orphan.parent_span_id
    LEFT JOIN torn_parent
        ON torn_parent.trace_id = orphan.trace_id
        AND torn_parent.parent_span_id = orphan.parent_span_id
),
described AS (
    SELECT
        found.trace_id,
        found.parent_span_id,
        found.children,
        found.span_id,
        found.name,
        found.service_name,
        found.run_id,
        found.file,
        found.line,
        found.torn_place,
        found.usual_caller,
        found.between_call,
        found.parent_is_remote,
        dead.label AS dead_process
    FROM found
    LEFT JOIN dead
        ON dead.run_id IS NOT DISTINCT FROM found.run_id
        AND dead.service_name = CASE
            WHEN found.parent_is_remote THEN found.usual_caller
            ELSE found.service_name
        END
)
SELECT
    'orphan' AS code,
    'error' AS severity,
    run_id,
    trace_id,
    span_id,
    file,
    line,
    _span_label(name, service_name) AS place,
    'parent ' || parent_span_id || ' of ' || _span_label(name, service_name)
        || ' is not in the input'
        || CASE WHEN children > 1 THEN ' (' || children || ' children)' ELSE '' END AS message,
    CASE
        WHEN torn_place IS NOT NULL THEN 'its line is torn: see ' || torn_place
        WHEN dead_process IS NOT NULL
            THEN dead_process || ' should have written it, but died with the span open'
        WHEN NOT parent_is_remote
            THEN coalesce(service_name, 'the same process')
                || ' should have written it: it died with the span open, or lines of it are lost'
        WHEN usual_caller IS NOT NULL
            THEN usual_caller || ', which usually calls ' || service_name
                || ', should have written it: is its log among the inputs, did it die?'
        WHEN between_call IS NOT NULL
            THEN between_call || ', and no log of what answers there is among the inputs: add it'
        ELSE 'no log of what calls ' || coalesce(service_name, 'it')
            || ' is among the inputs: add it'
    END AS hint,
    json_object(
        'parent_span_id', parent_span_id,
        'children', children,
        'parent_is_remote', parent_is_remote,
        'usual_caller', usual_caller,
        'dead_process', dead_process,
        'unanswered_call', between_call,
        'torn_line', torn_place
    ) AS evidence
FROM described;

COMMENT ON VIEW _finding_orphan IS 'One row is a parent that its children name and no line has.';

-- One row is a parent that its children name and no line has.
--
-- Why, by the first of these that holds: a torn line has its id; a span of the same id, written in
-- another way, is there; the child was told that its parent is not sampled; a call around it went
-- where nothing of the input answers; the process that should have written it, its own or one of the
-- service that usually calls its own (the one that is in the trace, if any is), lost lines, died
-- meanwhile or is still at work; else the file of that process was not given.
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
service_edge AS MATERIALIZED (
    SELECT
        client,
        server,
        kind,
        calls
    FROM service_edges
),
usual_caller AS (
    SELECT
        server,
        arg_max(client, (calls, client)) AS client
    FROM service_edge
    WHERE kind IN ('rpc', 'queue', 'internal')
    GROUP BY server
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
        ) AS what,
        arg_max(
            edge.server IS NOT NULL,
            (call.start_time_unix_nano, call.address)
        ) AS is_to_nowhere
    FROM orphan
    JOIN spans AS child ON child.rowid = orphan.first_child
    JOIN unanswered AS call
        ON call.trace_id = orphan.trace_id
        AND call.start_time_unix_nano <= child.start_time_unix_nano
        AND call.end_time_unix_nano >= child.start_time_unix_nano
    LEFT JOIN service_edge AS edge
        ON edge.kind = 'external'
        AND edge.client = call.service_name
        AND edge.server = call.address
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
        child.service_name,
        child.instance,
        child.run_id,
        child.file,
        child.line,
        torn_parent.place AS torn_place,
        caller.client AS usual_caller,
        between_call.what AS between_call,
        coalesce(between_call.is_to_nowhere, FALSE) AS is_to_nowhere,
        child.start_time_unix_nano,
        coalesce(child.end_time_unix_nano, child.start_time_unix_nano + child.open_ns)
            AS end_time_unix_nano,
        coalesce(child.flags & 257 = 256, FALSE)
            OR (
                _traceparent_ids(child.attributes->>'http.request.header.traceparent').flags = '00'
                AND _traceparent_ids(child.attributes->>'http.request.header.traceparent').span_id
                    = orphan.parent_span_id
            ) AS is_unsampled,
        CASE
            WHEN child.flags & 256 = 256 THEN child.flags & 512 = 512
            ELSE child.kind IN ('SERVER', 'CONSUMER')
        END AS parent_is_remote,
        CASE WHEN parent_is_remote THEN caller.client ELSE child.service_name END AS writer
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
seen_writer AS (
    SELECT DISTINCT
        found.trace_id,
        found.parent_span_id,
        span.instance
    FROM found
    JOIN spans AS span
        ON span.trace_id = found.trace_id
        AND span.service_name = found.writer
    WHERE found.parent_is_remote
),
possible_writer AS (
    SELECT
        found.trace_id,
        found.parent_span_id,
        owner.instance,
        owner.state = 'dead'
            AND (
                NOT found.parent_is_remote
                OR owner.last_time_unix_nano
                    BETWEEN found.start_time_unix_nano - 60000000000
                    AND found.end_time_unix_nano + 5000000000
            ) AS has_died,
        owner.state = 'alive' AS is_alive,
        seen.instance IS NOT NULL AS is_seen,
        _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid) AS label
    FROM found
    JOIN instances AS owner
        ON owner.service_name = found.writer
        AND owner.run_id IS NOT DISTINCT FROM found.run_id
        AND (found.parent_is_remote OR owner.instance = found.instance)
    LEFT JOIN seen_writer AS seen
        ON seen.trace_id = found.trace_id
        AND seen.parent_span_id = found.parent_span_id
        AND seen.instance = owner.instance
    QUALIFY is_seen
        OR NOT bool_or(is_seen) OVER (PARTITION BY found.trace_id, found.parent_span_id)
),
writer AS (
    SELECT
        possible.trace_id,
        possible.parent_span_id,
        bool_or(possible.is_seen) AS is_seen,
        min(possible.label) FILTER (possible.has_died) AS dead_process,
        min(possible.label) FILTER (possible.is_alive) AS live_process,
        min(possible.label) FILTER (lost.lines > 0) AS losing_process,
        sum(lost.lines)::BIGINT AS lost_lines
    FROM possible_writer AS possible
    LEFT JOIN (
        SELECT
            counted.instance,
            counted.lines
        FROM _lost_line_counts AS counted
        SEMI JOIN possible_writer USING (instance)
    ) AS lost USING (instance)
    GROUP BY possible.trace_id, possible.parent_span_id
),
respelled AS (
    SELECT
        orphan.trace_id,
        orphan.parent_span_id,
        min_by(parent.trace_id, (parent.trace_id, parent.span_id)) AS other_trace_id,
        min_by(parent.span_id, (parent.trace_id, parent.span_id)) AS other_span_id
    FROM orphan
    JOIN _respelled_parents AS respelled ON respelled.node = orphan.first_child
    JOIN spans AS parent ON parent.rowid = respelled.other
    GROUP BY orphan.trace_id, orphan.parent_span_id
),
judged AS (
    SELECT
        found.*,
        writer.dead_process,
        writer.live_process,
        writer.losing_process,
        writer.lost_lines,
        spelling.other_trace_id,
        spelling.other_span_id,
        CASE
            WHEN found.torn_place IS NOT NULL THEN 'line_torn'
            WHEN spelling.other_span_id IS NOT NULL THEN 'id_format'
            WHEN found.is_unsampled THEN 'not_sampled'
            WHEN found.parent_is_remote AND found.is_to_nowhere AND writer.is_seen IS NOT TRUE
                THEN 'file_missing'
            WHEN writer.losing_process IS NOT NULL THEN 'lines_lost'
            WHEN writer.dead_process IS NOT NULL THEN 'parent_unfinished'
            WHEN writer.live_process IS NOT NULL THEN 'parent_unfinished'
            WHEN found.parent_is_remote THEN 'file_missing'
            ELSE 'unknown'
        END AS cause
    FROM found
    LEFT JOIN writer
        ON writer.trace_id = found.trace_id
        AND writer.parent_span_id = found.parent_span_id
    LEFT JOIN respelled AS spelling
        ON spelling.trace_id = found.trace_id
        AND spelling.parent_span_id = found.parent_span_id
)
SELECT
    'orphan' AS code,
    'error' AS severity,
    cause,
    CASE cause
        WHEN 'line_torn' THEN 1
        WHEN 'id_format' THEN 0.95
        WHEN 'not_sampled' THEN 0.9
        WHEN 'lines_lost' THEN 0.8
        WHEN 'parent_unfinished' THEN CASE WHEN dead_process IS NULL THEN 0.7 ELSE 0.8 END
        WHEN 'file_missing' THEN CASE
            WHEN between_call IS NOT NULL THEN 0.9
            WHEN usual_caller IS NULL THEN 0.8
            ELSE 0.6
        END
        ELSE 0.3
    END AS confidence,
    run_id,
    trace_id,
    span_id,
    file,
    line,
    _span_label(name, service_name) AS place,
    'parent ' || parent_span_id || ' of ' || _span_label(name, service_name)
        || ' is not in the input'
        || CASE WHEN children > 1 THEN ' (' || children || ' children)' ELSE '' END AS message,
    CASE cause
        WHEN 'line_torn' THEN 'its line is torn: see ' || torn_place
        WHEN 'id_format'
            THEN 'the same id is written in two ways: it is span ' || other_span_id || ' of trace '
                || other_trace_id || '; let all services write ids as W3C has them'
        WHEN 'not_sampled'
            THEN 'its caller was told not to record (sampled flag 0): sample alike in '
                || 'every service, or always'
        WHEN 'lines_lost'
            THEN losing_process || ' should have written it, and ' || lost_lines || CASE
                WHEN lost_lines = 1 THEN ' line of it is' ELSE ' lines of it are'
            END || ' lost: see lost_lines'
        WHEN 'parent_unfinished'
            THEN coalesce(dead_process, live_process) || ' should have written it, but ' || CASE
                WHEN dead_process IS NULL THEN 'had not ended the span when the logs end'
                ELSE 'died with the span open'
            END
        WHEN 'unknown'
            THEN coalesce(service_name, 'the same process')
                || ' should have written it: it died with the span open, or lines of it are lost'
        ELSE CASE
            WHEN usual_caller IS NOT NULL AND NOT is_to_nowhere
                THEN usual_caller || ', which usually calls ' || service_name
                    || ', should have written it: is its log among the inputs, did it die?'
            WHEN between_call IS NOT NULL
                THEN between_call || ', and no log of what answers there is among the inputs: add it'
            ELSE 'no log of what calls ' || coalesce(service_name, 'it')
                || ' is among the inputs: add it'
        END
    END AS hint,
    json_object(
        'parent_span_id', parent_span_id,
        'children', children,
        'parent_is_remote', parent_is_remote,
        'usual_caller', usual_caller,
        'dead_process', dead_process,
        'lost_lines', lost_lines,
        'unanswered_call', between_call,
        'torn_line', torn_place,
        'other_trace_id', other_trace_id,
        'other_span_id', other_span_id
    ) AS evidence
FROM judged;

COMMENT ON VIEW _finding_orphan IS 'One row is a parent that its children name and no line has.';

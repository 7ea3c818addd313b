-- One row is a span that had begun and not ended at an instant, ns since 1970; with null, one that
-- has no end of its own when the logs end: it is open, was lost with its process, or was ended by a
-- shutdown or by being cancelled.
--
-- Its kind is its service, name and route; where its own route is unknown, of all routes. It is
-- stuck when it was open for longer than 99 % of the finished ones of its kind took, of which there
-- must be 10.
CREATE MACRO stuck_work_at(instant) AS TABLE (
    WITH
    work AS MATERIALIZED (
        SELECT
            running.node,
            running.ending,
            running.seen_until_unix_nano,
            edge.parent,
            span.trace_id,
            span.span_id,
            span.occurrence,
            span.name,
            span.kind,
            span.service_name,
            span.instance,
            _route_of(span.kind, span.attributes) AS route,
            _peer_address(span.attributes) AS address,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.file,
            span.line
        FROM _running_at(instant) AS running
        JOIN spans AS span ON span.rowid = running.node
        JOIN _edges AS edge ON edge.node = running.node
    ),
    below AS (
        SELECT
            parent AS node,
            count(*) AS spans,
            arg_min(_span_label(name, service_name), (start_time_unix_nano, span_id, node))
                AS label
        FROM work
        WHERE parent IS NOT NULL
        GROUP BY parent
    ),
    finished AS (
        SELECT
            span.service_name,
            span.name,
            _route_of(span.kind, span.attributes) AS route,
            span.duration_ns
        FROM spans AS span
        SEMI JOIN work
            ON work.name = span.name
            AND work.service_name IS NOT DISTINCT FROM span.service_name
        WHERE NOT _has_no_end(span.state, span.attributes)
    ),
    peers AS (
        SELECT
            service_name,
            name,
            route,
            count(*) AS spans,
            quantile_disc(duration_ns, 0.99) AS p99_ns,
            max(duration_ns) AS longest_ns
        FROM finished
        GROUP BY GROUPING SETS ((service_name, name, route), (service_name, name))
        HAVING (route IS NULL) = (grouping(route) = 1)
    ),
    caller AS MATERIALIZED (
        SELECT
            node,
            service_name,
            address
        FROM work
        WHERE kind IN ('CLIENT', 'PRODUCER')
            AND node NOT IN (SELECT node FROM below)
    ),
    answered AS (
        SELECT
            edge.parent AS node,
            arg_max(
                _span_label(span.name, span.service_name),
                (span.end_time_unix_nano, span.span_id, edge.node)
            ) AS label
        FROM _edges AS edge
        JOIN caller ON caller.node = edge.parent
        JOIN spans AS span ON span.rowid = edge.node
        WHERE span.end_time_unix_nano <= coalesce(instant, span.end_time_unix_nano)
        GROUP BY edge.parent
    ),
    lone_caller AS MATERIALIZED (
        SELECT
            service_name,
            address
        FROM caller
        WHERE address IS NOT NULL AND node NOT IN (SELECT node FROM answered)
    ),
    -- Who answers at an address is known from the calls that it answered.
    listener AS (
        SELECT
            client.address,
            mode(server.service_name ORDER BY server.service_name) AS service_name,
            bool_and(
                owner.state IN ('dead', 'stopped')
                AND (instant IS NULL OR owner.last_time_unix_nano < instant)
            ) AS is_gone
        FROM (
            SELECT
                span.rowid AS node,
                span.instance,
                _peer_address(span.attributes) AS address
            FROM spans AS span
            SEMI JOIN lone_caller USING (service_name)
            WHERE span.kind IN ('CLIENT', 'PRODUCER')
        ) AS client
        SEMI JOIN lone_caller USING (address)
        JOIN _edges AS edge ON edge.parent = client.node
        JOIN spans AS server ON server.rowid = edge.node
        JOIN instances AS owner ON owner.instance = server.instance
        WHERE server.instance <> client.instance
        GROUP BY client.address
    ),
    judged AS (
        SELECT
            work.*,
            below.node IS NULL AS is_innermost,
            work.seen_until_unix_nano - work.start_time_unix_nano AS open_ns,
            max(work.seen_until_unix_nano) OVER (
                PARTITION BY work.trace_id
                ORDER BY work.start_time_unix_nano
                RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) - work.start_time_unix_nano AS waited_ns,
            CASE WHEN peers.spans >= 10 THEN peers.p99_ns END AS kind_p99_ns,
            peers.longest_ns,
            coalesce(peers.spans, 0) AS peers,
            CASE
                WHEN below.node IS NOT NULL THEN
                    below.label || CASE
                        WHEN below.spans > 1 THEN ' and ' || below.spans - 1 || ' more'
                        ELSE ''
                    END
                WHEN answered.label IS NOT NULL THEN
                    'the answer of ' || answered.label || ', which has ended'
                WHEN listener.service_name IS NOT NULL THEN
                    listener.service_name || ' at ' || work.address || CASE
                        WHEN listener.is_gone THEN ', whose process is gone'
                        ELSE ''
                    END
                WHEN work.kind IN ('CLIENT', 'PRODUCER') THEN
                    coalesce(work.address, 'an unknown address')
                    || ', of which these logs know nothing'
                ELSE 'its own work'
            END AS waits_for
        FROM work
        LEFT JOIN below USING (node)
        LEFT JOIN peers
            ON peers.name = work.name
            AND peers.service_name IS NOT DISTINCT FROM work.service_name
            AND peers.route IS NOT DISTINCT FROM work.route
        LEFT JOIN answered ON answered.node = work.node
        LEFT JOIN listener
            ON listener.address = work.address
            AND work.kind IN ('CLIENT', 'PRODUCER')
    )
    SELECT
        judged.trace_id,
        judged.span_id,
        judged.occurrence,
        judged.name,
        judged.kind,
        judged.route,
        judged.service_name,
        coalesce(owner.run_id, member.run_id) AS run_id,
        member.rollout_id,
        judged.ending,
        judged.start_time_unix_nano,
        judged.open_ns,
        judged.waited_ns,
        judged.kind_p99_ns,
        judged.longest_ns AS longest_peer_ns,
        judged.peers AS finished_peers,
        judged.open_ns > judged.kind_p99_ns AS is_stuck,
        judged.is_innermost,
        judged.waits_for,
        judged.instance,
        owner.state AS process_state,
        owner.process_pid,
        owner.host_name,
        owner.last_time_unix_nano AS last_sign_of_life_unix_nano,
        last_line.file AS last_file,
        last_line.line AS last_line,
        judged.file,
        judged.line,
        judged.node
    FROM judged
    JOIN instances AS owner USING (instance)
    LEFT JOIN _rollout_spans AS member ON member.node = judged.node
    LEFT JOIN _last_lines AS last_line ON last_line.instance = judged.instance
);

COMMENT ON MACRO TABLE stuck_work_at IS 'One row is a span that had begun and not ended at an instant, ns since 1970 (null: one that has no end of its own when the logs end), with the columns of stuck_work.';

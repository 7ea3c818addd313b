-- One row is a span that did nearly the same more than ten times, one after the other: finished
-- children of one name, service and route that took between half and twice their median, and of
-- whose time no more than a tenth was spent beside another of them.
--
-- That tells a loop of calls (N+1) from a fan-out, whose calls look the same but overlap. The route
-- is http.route or url.template, of a client span else http.route of its server half.
CREATE VIEW repeated_calls AS
WITH
crowd AS (
    SELECT parent
    FROM _edges
    GROUP BY parent
    HAVING parent IS NOT NULL AND count(*) > 10
),
child AS MATERIALIZED (
    SELECT
        edge.parent,
        edge.node,
        span.service_name,
        span.name,
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.duration_ns,
        span.span_id
    FROM _edges AS edge
    JOIN spans AS span ON span.rowid = edge.node
    WHERE edge.parent IN (SELECT parent FROM crowd) AND span.state = 'finished'
),
namesake AS MATERIALIZED (
    SELECT
        child.*,
        count(*) OVER (PARTITION BY child.parent, child.service_name, child.name) AS namesakes
    FROM child
    QUALIFY namesakes > 10
),
own_route AS (
    SELECT
        rowid AS node,
        coalesce(attributes->>'http.route', attributes->>'url.template') AS route
    FROM spans
    WHERE rowid IN (SELECT node FROM namesake)
),
server_route AS (
    SELECT
        edge.parent AS node,
        min(server.attributes->>'http.route') AS route
    FROM _edges AS edge
    JOIN spans AS server ON server.rowid = edge.node
    WHERE server.kind = 'SERVER'
        AND edge.parent IN (
            SELECT node
            FROM namesake
            WHERE kind = 'CLIENT'
        )
    GROUP BY edge.parent
),
call AS (
    SELECT
        namesake.*,
        coalesce(own_route.route, server_route.route) AS route,
        quantile_cont(namesake.duration_ns, 0.5) OVER (
            PARTITION BY namesake.parent, namesake.service_name, namesake.name,
                coalesce(own_route.route, server_route.route)
        ) AS median_ns
    FROM namesake
    LEFT JOIN own_route USING (node)
    LEFT JOIN server_route USING (node)
),
stretch AS (
    SELECT
        call.parent,
        call.service_name,
        call.name,
        call.route,
        call.span_id,
        call.duration_ns,
        call.start_time_unix_nano,
        call.end_time_unix_nano,
        max(call.end_time_unix_nano) OVER (
            PARTITION BY call.parent, call.service_name, call.name, call.route
            ORDER BY call.start_time_unix_nano, call.end_time_unix_nano
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_until,
        parent.start_time_unix_nano AS parent_start,
        coalesce(parent.end_time_unix_nano, parent.start_time_unix_nano + parent.open_ns)
            AS parent_end
    FROM call
    JOIN _edges AS parent ON parent.node = call.parent
    WHERE 2 * call.duration_ns >= call.median_ns AND call.duration_ns <= 2 * call.median_ns
),
series AS (
    SELECT
        parent,
        service_name,
        name,
        route,
        any_value(parent_end - parent_start) AS parent_ns,
        count(*) AS call_count,
        arg_min(span_id, (start_time_unix_nano, span_id)) AS first_span_id,
        min(start_time_unix_nano) AS start_time_unix_nano,
        max(end_time_unix_nano) AS end_time_unix_nano,
        round(quantile_cont(duration_ns, 0.5))::BIGINT AS duration_p50_ns,
        sum(duration_ns)::BIGINT AS duration_total_ns,
        sum(
            greatest(
                0,
                end_time_unix_nano
                    - greatest(start_time_unix_nano, coalesce(covered_until, start_time_unix_nano))
            )
        )::BIGINT AS covered_ns,
        sum(
            greatest(
                0,
                least(end_time_unix_nano, parent_end) - greatest(
                    start_time_unix_nano,
                    coalesce(covered_until, start_time_unix_nano),
                    parent_start
                )
            )
        )::BIGINT AS covered_in_parent_ns
    FROM stretch
    GROUP BY parent, service_name, name, route
    HAVING count(*) > 10
)
SELECT
    parent.trace_id,
    parent.span_id AS parent_span_id,
    parent.occurrence AS parent_occurrence,
    parent.run_id,
    parent.service_name AS parent_service_name,
    parent.name AS parent_name,
    series.service_name,
    series.name,
    series.route,
    series.call_count,
    series.duration_p50_ns,
    series.duration_total_ns,
    series.covered_in_parent_ns / nullif(series.parent_ns, 0) AS parent_share,
    coalesce(1 - series.covered_ns / nullif(series.duration_total_ns, 0), 0) AS overlap_share,
    series.first_span_id,
    series.start_time_unix_nano,
    series.end_time_unix_nano
FROM series
JOIN spans AS parent ON parent.rowid = series.parent
WHERE 10 * (series.duration_total_ns - series.covered_ns) <= series.duration_total_ns;

COMMENT ON VIEW repeated_calls IS 'One row is a span that did nearly the same more than ten times, one after the other (N+1): finished children of one name, service and route that took between half and twice their median, and of whose time no more than a tenth was spent beside another of them.';
COMMENT ON COLUMN repeated_calls.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN repeated_calls.parent_span_id IS 'The span that did it.';
COMMENT ON COLUMN repeated_calls.parent_occurrence IS 'occurrence of that span in spans.';
COMMENT ON COLUMN repeated_calls.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN repeated_calls.parent_service_name IS 'service.name of its process.';
COMMENT ON COLUMN repeated_calls.parent_name IS 'What it does.';
COMMENT ON COLUMN repeated_calls.service_name IS 'service.name of the children.';
COMMENT ON COLUMN repeated_calls.name IS 'Name of the children.';
COMMENT ON COLUMN repeated_calls.route IS 'http.route or url.template of the children, of client spans else http.route of their server halves; null without one.';
COMMENT ON COLUMN repeated_calls.call_count IS 'How many of them took between half and twice the median.';
COMMENT ON COLUMN repeated_calls.duration_p50_ns IS 'Their median duration, ns.';
COMMENT ON COLUMN repeated_calls.duration_total_ns IS 'Sum of their durations, ns.';
COMMENT ON COLUMN repeated_calls.parent_share IS 'Part of the parent''s time in which one of them ran, 0 to 1; of an unfinished parent, of what was seen.';
COMMENT ON COLUMN repeated_calls.overlap_share IS 'Part of their durations that lies beside an earlier one of them, 0 to 1: 0 when they follow each other, near 1 when all run at once.';
COMMENT ON COLUMN repeated_calls.first_span_id IS 'The first of them.';
COMMENT ON COLUMN repeated_calls.start_time_unix_nano IS 'Start of the first, ns since 1970.';
COMMENT ON COLUMN repeated_calls.end_time_unix_nano IS 'End of the last, ns since 1970.';

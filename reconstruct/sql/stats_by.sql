-- One row is a group of spans that have the same values (key_values) under all of `keys`: how many,
-- how many failed, how long they took, how much of that was their own, and how much of it roots
-- waited for.
--
-- A key is a column of spans, `route` (http.route), `outcome` (open; lost; cancelled; error with
-- its error.type or HTTP status; ok with its class of HTTP status) or the key of an attribute.
-- `relation` names what to read in place of spans, with the same columns: a table, a view, or a
-- query above (WITH). Rates are per second from the first start to the last end in it, or from
-- `since` to `until` as far as the logs go (ns since 1970).
CREATE MACRO stats_by(keys, relation := 'spans', since := NULL, until := NULL) AS TABLE (
    WITH
    measured AS (
        SELECT
            list_transform(
                keys,
                lambda key: CASE key
                    WHEN 'name' THEN span.name
                    WHEN 'service_name' THEN span.service_name
                    WHEN 'service_instance_id' THEN span.service_instance_id
                    WHEN 'instance' THEN span.instance
                    WHEN 'server_name' THEN span.server_name
                    WHEN 'server_type' THEN span.server_type
                    WHEN 'host_name' THEN span.host_name
                    WHEN 'process_pid' THEN span.process_pid::VARCHAR
                    WHEN 'run_id' THEN span.run_id
                    WHEN 'rollout_id' THEN span.rollout_id
                    WHEN 'trace_id' THEN span.trace_id
                    WHEN 'kind' THEN span.kind
                    WHEN 'state' THEN span.state
                    WHEN 'status_code' THEN span.status_code
                    WHEN 'scope_name' THEN span.scope_name
                    WHEN 'route' THEN span.attributes->>'http.route'
                    WHEN 'outcome' THEN _outcome(span.state, span.status_code, span.attributes)
                    ELSE span.attributes->>(
                        CASE WHEN key[1] IN ('$', '/') THEN '$."' || key || '"' ELSE key END
                    )
                END
            ) AS key_values,
            span.state,
            span.status_code,
            span.start_time_unix_nano,
            coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns)
                AS seen_until_unix_nano,
            span.duration_ns,
            own.self_time_ns,
            blamed.blame_ns
        FROM query_table(relation) AS span
        LEFT JOIN _self_times AS own ON own.node = span.rowid
        LEFT JOIN _blames AS blamed ON blamed.node = span.rowid
    ),
    counted AS (
        SELECT
            key_values,
            count(*) AS span_count,
            count(*) FILTER (status_code = 'ERROR') AS error_count,
            count(*) FILTER (state <> 'finished') AS open_count,
            quantile_cont(duration_ns, [0.5, 0.9, 0.95, 0.99]) AS quantiles,
            max(duration_ns) AS duration_max_ns,
            sum(duration_ns)::BIGINT AS duration_total_ns,
            sum(self_time_ns)::BIGINT AS self_time_ns,
            sum(blame_ns)::BIGINT AS blame_ns,
            min(start_time_unix_nano) AS first_time,
            max(seen_until_unix_nano) AS last_time
        FROM measured
        GROUP BY key_values
    ),
    logs AS (
        SELECT
            min(start_time_unix_nano) AS first_time,
            max(end_time_unix_nano) AS last_time
        FROM traces
    ),
    ranged AS (
        SELECT
            counted.*,
            CASE
                WHEN until::BIGINT IS NULL THEN max(counted.last_time) OVER ()
                ELSE least(until::BIGINT, logs.last_time)
            END - CASE
                WHEN since::BIGINT IS NULL THEN min(counted.first_time) OVER ()
                ELSE greatest(since::BIGINT, logs.first_time)
            END AS range_ns
        FROM counted
        CROSS JOIN logs
    )
    SELECT
        key_values,
        span_count,
        CASE WHEN range_ns > 0 THEN span_count * 1e9 / range_ns END AS spans_per_second,
        error_count,
        error_count / span_count AS error_share,
        open_count,
        round(quantiles[1])::BIGINT AS duration_p50_ns,
        round(quantiles[2])::BIGINT AS duration_p90_ns,
        round(quantiles[3])::BIGINT AS duration_p95_ns,
        round(quantiles[4])::BIGINT AS duration_p99_ns,
        duration_max_ns,
        duration_total_ns,
        self_time_ns,
        coalesce(blame_ns, 0) AS blame_ns,
        range_ns
    FROM ranged
);

COMMENT ON MACRO TABLE stats_by IS 'One row is a group of spans that have the same values (key_values) under all of `keys`: columns of spans, route, outcome or keys of attributes; the other columns are those of stats. `relation` names what to read in place of spans, `since` and `until` what rates are per (ns since 1970).';

-- One row is a span name in a service: how many, how many failed, how long they took.
CREATE VIEW stats AS
SELECT
    key_values[1] AS service_name,
    key_values[2] AS name,
    span_count,
    spans_per_second,
    error_count,
    error_share,
    open_count,
    duration_p50_ns,
    duration_p90_ns,
    duration_p95_ns,
    duration_p99_ns,
    duration_max_ns,
    duration_total_ns,
    self_time_ns,
    blame_ns,
    range_ns
FROM stats_by(['service_name', 'name']);

COMMENT ON VIEW stats IS 'One row is a span name in a service: how many, how many failed, how long they took. stats_by(keys) groups by any columns of spans, by route, outcome and keys of attributes.';
COMMENT ON COLUMN stats.service_name IS 'service.name of their process.';
COMMENT ON COLUMN stats.name IS 'What the spans do.';
COMMENT ON COLUMN stats.span_count IS 'Spans, unfinished ones too.';
COMMENT ON COLUMN stats.spans_per_second IS 'span_count by range_ns; null where that is 0.';
COMMENT ON COLUMN stats.error_count IS 'Spans with status ERROR.';
COMMENT ON COLUMN stats.error_share IS 'error_count by span_count, 0 to 1.';
COMMENT ON COLUMN stats.open_count IS 'Unfinished spans, open or lost; they have no part in durations and self time.';
COMMENT ON COLUMN stats.duration_p50_ns IS 'Median duration, ns: half of the finished spans took at most this long. Quantiles lie on the line between the two nearest durations and are rounded to ns.';
COMMENT ON COLUMN stats.duration_p90_ns IS '90 % of the finished spans took at most this long, ns.';
COMMENT ON COLUMN stats.duration_p95_ns IS '95 % of the finished spans took at most this long, ns.';
COMMENT ON COLUMN stats.duration_p99_ns IS '99 % of the finished spans took at most this long, ns.';
COMMENT ON COLUMN stats.duration_max_ns IS 'Longest duration, ns.';
COMMENT ON COLUMN stats.duration_total_ns IS 'Sum of the durations, ns; time in children counts again with the children.';
COMMENT ON COLUMN stats.self_time_ns IS 'Sum of the self times, ns: duration less what children cover (self_time).';
COMMENT ON COLUMN stats.blame_ns IS 'Time on critical paths, ns: how much of the durations of roots these spans are to blame for (blame); of unfinished ones what was seen.';
COMMENT ON COLUMN stats.range_ns IS 'Time that rates are per, ns: from the first start to the last end of all spans that are counted, or between the times that were asked for, as far as the logs go.';

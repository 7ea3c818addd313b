-- One row is a record that repeats another one: all of it is equal, so a file or a line was read
-- twice. The first by file and line is kept.
CREATE TABLE _duplicate_lines AS
WITH
repeated_span AS (
    SELECT
        trace_id,
        span_id,
        record_type
    FROM _span_lines
    GROUP BY trace_id, span_id, record_type
    HAVING count(*) > 1
),
ranked_span AS (
    SELECT
        record_type AS class,
        rowid AS row_id,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER span_copies AS nth,
        first_value(rowid) OVER span_copies AS kept_row_id,
        first_value(file || ':' || line) OVER span_copies AS kept_place
    FROM _span_lines
    SEMI JOIN repeated_span USING (trace_id, span_id, record_type)
    WINDOW span_copies AS (
        PARTITION BY
            trace_id,
            span_id,
            record_type,
            parent_span_id,
            name,
            kind,
            start_time_unix_nano,
            end_time_unix_nano,
            flags,
            trace_state,
            status_code,
            status_message,
            attributes::VARCHAR,
            events::VARCHAR,
            links::VARCHAR,
            scope_name,
            scope_version,
            resource::VARCHAR
        ORDER BY file, line, byte_offset, rowid
    )
),
ranked_other AS (
    SELECT
        'log' AS class,
        rowid AS row_id,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER log_copies AS nth,
        first_value(rowid) OVER log_copies AS kept_row_id,
        first_value(file || ':' || line) OVER log_copies AS kept_place
    FROM _log_lines
    WHERE seq IS NOT NULL
    WINDOW log_copies AS (
        PARTITION BY instance, seq, time_unix_nano, body::VARCHAR, attributes::VARCHAR
        ORDER BY file, line, byte_offset, rowid
    )
    UNION ALL
    SELECT
        'metric',
        rowid,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER metric_copies,
        first_value(rowid) OVER metric_copies,
        first_value(file || ':' || line) OVER metric_copies
    FROM _metric_lines
    WHERE seq IS NOT NULL
    WINDOW metric_copies AS (
        PARTITION BY instance, seq, time_unix_nano, name, attributes::VARCHAR
        ORDER BY file, line, byte_offset, rowid
    )
    UNION ALL
    SELECT
        'process',
        rowid,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER process_copies,
        first_value(rowid) OVER process_copies,
        first_value(file || ':' || line) OVER process_copies
    FROM _process_lines
    WHERE seq IS NOT NULL
    WINDOW process_copies AS (
        PARTITION BY instance, seq, time_unix_nano, state
        ORDER BY file, line, byte_offset, rowid
    )
)
SELECT
    class,
    row_id,
    kept_row_id,
    kept_place,
    file,
    line,
    byte_offset,
    recovered
FROM ranked_span
WHERE nth > 1
UNION ALL
SELECT
    class,
    row_id,
    kept_row_id,
    kept_place,
    file,
    line,
    byte_offset,
    recovered
FROM ranked_other
WHERE nth > 1;

COMMENT ON TABLE _duplicate_lines IS 'One row is a record that repeats another one; the first by file and line is kept.';

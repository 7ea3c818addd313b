-- One row is a record that repeats another one: all of it is equal, so a file or a line was read
-- twice. The first by file and line is kept.
--
-- A logger that does not number its lines may say the same twice. Its record is a repetition where
-- another file has it as often, and its time is finer than a millisecond or it names a span: two
-- processes may well say the same in the same second.
CREATE TABLE _duplicate_lines AS
WITH
ranked_span AS (
    SELECT
        record_type AS class,
        line.rowid AS row_id,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER span_copies AS nth,
        first_value(line.rowid) OVER span_copies AS kept_row_id,
        first_value(file || ':' || line) OVER span_copies AS kept_place
    FROM _span_lines AS line
    JOIN _owners USING (owner)
    WHERE line.rowid IN (SELECT row_id FROM _repeated_span_lines)
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
        ORDER BY file, line, byte_offset, line.rowid
    )
),
unnumbered_log AS (
    SELECT
        line.rowid AS row_id,
        file,
        line,
        byte_offset,
        recovered,
        [
            instance,
            time_unix_nano::VARCHAR,
            severity_number::VARCHAR,
            severity_text,
            body::VARCHAR,
            attributes::VARCHAR,
            trace_id,
            span_id,
            flags::VARCHAR,
            scope_name,
            scope_version,
            resource::VARCHAR
        ] AS content,
        row_number() OVER (
            PARTITION BY file, content
            ORDER BY line, byte_offset, line.rowid
        ) AS nth_in_file
    FROM _log_lines AS line
    JOIN _owners USING (owner)
    SEMI JOIN (
        SELECT instance, time_unix_nano
        FROM _log_lines
        JOIN _owners USING (owner)
        WHERE seq IS NULL
        GROUP BY instance, time_unix_nano
        HAVING min(file) <> max(file)
    ) AS repeated_log USING (instance, time_unix_nano)
    WHERE seq IS NULL AND (span_id IS NOT NULL OR time_unix_nano % 1000000 <> 0)
),
unnumbered_metric AS (
    SELECT
        line.rowid AS row_id,
        file,
        line,
        byte_offset,
        recovered,
        [
            instance,
            name,
            unit,
            type,
            start_time_unix_nano::VARCHAR,
            time_unix_nano::VARCHAR,
            attributes::VARCHAR,
            value::VARCHAR,
            count::VARCHAR,
            sum::VARCHAR,
            min::VARCHAR,
            max::VARCHAR,
            bucket_counts::VARCHAR,
            scope_name,
            scope_version,
            resource::VARCHAR
        ] AS content
    FROM _metric_lines AS line
    JOIN _owners USING (owner)
    SEMI JOIN (
        SELECT instance, time_unix_nano, name
        FROM _metric_lines
        JOIN _owners USING (owner)
        WHERE seq IS NULL
        GROUP BY instance, time_unix_nano, name
        HAVING min(file) <> max(file)
    ) AS repeated_metric USING (instance, time_unix_nano, name)
    WHERE seq IS NULL
),
ranked_other AS (
    SELECT
        'log' AS class,
        line.rowid AS row_id,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER log_copies AS nth,
        first_value(line.rowid) OVER log_copies AS kept_row_id,
        first_value(file || ':' || line) OVER log_copies AS kept_place
    FROM _log_lines AS line
    JOIN _owners USING (owner)
    WHERE seq IS NOT NULL
    WINDOW log_copies AS (
        PARTITION BY instance, seq, time_unix_nano, body::VARCHAR, attributes::VARCHAR
        ORDER BY file, line, byte_offset, line.rowid
    )
    UNION ALL
    SELECT
        'metric',
        line.rowid,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER metric_copies,
        first_value(line.rowid) OVER metric_copies,
        first_value(file || ':' || line) OVER metric_copies
    FROM _metric_lines AS line
    JOIN _owners USING (owner)
    WHERE seq IS NOT NULL
    WINDOW metric_copies AS (
        PARTITION BY instance, seq, time_unix_nano, name, attributes::VARCHAR
        ORDER BY file, line, byte_offset, line.rowid
    )
    UNION ALL
    SELECT
        'process',
        line.rowid,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER process_copies,
        first_value(line.rowid) OVER process_copies,
        first_value(file || ':' || line) OVER process_copies
    FROM _process_lines AS line
    JOIN _owners USING (owner)
    WHERE seq IS NOT NULL
    WINDOW process_copies AS (
        PARTITION BY instance, seq, time_unix_nano, state
        ORDER BY file, line, byte_offset, line.rowid
    )
    UNION ALL
    SELECT
        'model_call',
        rowid,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER call_copies,
        first_value(rowid) OVER call_copies,
        first_value(file || ':' || line) OVER call_copies
    FROM _capture_lines
    WINDOW call_copies AS (
        PARTITION BY model_call_id, record::VARCHAR
        ORDER BY file, line, byte_offset, rowid
    )
    UNION ALL
    SELECT
        'log',
        row_id,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER unnumbered_log_copies,
        first_value(row_id) OVER unnumbered_log_copies,
        first_value(file || ':' || line) OVER unnumbered_log_copies
    FROM unnumbered_log
    WINDOW unnumbered_log_copies AS (
        PARTITION BY nth_in_file, content
        ORDER BY file, line, byte_offset, row_id
    )
    UNION ALL
    SELECT
        'metric',
        row_id,
        file,
        line,
        byte_offset,
        recovered,
        row_number() OVER unnumbered_metric_copies,
        first_value(row_id) OVER unnumbered_metric_copies,
        first_value(file || ':' || line) OVER unnumbered_metric_copies
    FROM unnumbered_metric
    WINDOW unnumbered_metric_copies AS (
        PARTITION BY content
        ORDER BY file, line, byte_offset, row_id
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

-- One row is a span line that is no span of its own, or a span that is not all that its line says.
--
-- Left out are copies of another line, and a start whose span has ended. Lines of different contents
-- under one id are numbered by `occurrence`.
CREATE TABLE _odd_spans AS
WITH
span_line AS (
    SELECT *
    FROM _repeated_span_lines
    WHERE row_id NOT IN (
        SELECT row_id
        FROM _duplicate_lines
        WHERE class IN ('span', 'span_start')
    )
),
ended_start AS (
    SELECT start.row_id
    FROM _repeated_span_lines AS start
    SEMI JOIN (
        SELECT
            trace_id,
            span_id
        FROM _repeated_span_lines
        WHERE record_type = 'span'
    ) AS ended USING (trace_id, span_id)
    WHERE start.record_type = 'span_start'
),
left_out AS (
    SELECT row_id
    FROM _duplicate_lines
    WHERE class IN ('span', 'span_start')
    UNION
    SELECT row_id
    FROM ended_start
),
copy_count AS (
    SELECT
        kept_row_id AS row_id,
        count(*) AS copies
    FROM _duplicate_lines
    WHERE class IN ('span', 'span_start')
    GROUP BY kept_row_id
),
collision AS (
    SELECT
        trace_id,
        span_id,
        record_type
    FROM span_line
    GROUP BY trace_id, span_id, record_type
    HAVING count(*) > 1
),
occurrence AS (
    SELECT
        line.rowid AS row_id,
        row_number() OVER (
            PARTITION BY line.trace_id, line.span_id, line.record_type
            ORDER BY
                line.start_time_unix_nano,
                line.end_time_unix_nano,
                line.name,
                owner.instance,
                line.parent_span_id,
                line.attributes::VARCHAR,
                line.file,
                line.line,
                line.rowid
        ) AS nth
    FROM _span_lines AS line
    JOIN _owners AS owner USING (owner)
    SEMI JOIN collision USING (trace_id, span_id, record_type)
    WHERE line.rowid IN (SELECT row_id FROM span_line)
),
odd AS (
    SELECT row_id FROM left_out
    UNION
    SELECT row_id FROM copy_count
    UNION
    SELECT row_id FROM occurrence
    UNION
    SELECT row_id FROM _shared_parents
)
SELECT
    odd.row_id,
    left_out.row_id IS NOT NULL AS is_left_out,
    copy.copies,
    occurrence.nth AS occurrence,
    shared.row_id IS NOT NULL AS has_other_parent,
    shared.parent_span_id
FROM odd
LEFT JOIN left_out USING (row_id)
LEFT JOIN copy_count AS copy USING (row_id)
LEFT JOIN occurrence USING (row_id)
LEFT JOIN _shared_parents AS shared USING (row_id);

COMMENT ON TABLE _odd_spans IS 'One row is a span line that is no span of its own, or a span that is not all that its line says.';

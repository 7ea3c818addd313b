-- One row is a file with damaged lines of one class.
--
-- A whole record among other text is only noted. Text that is not UTF-8 is no concern of traces. What
-- was refused for an id is told by invalid_id.
CREATE VIEW _finding_torn_lines AS
WITH damaged AS (
    SELECT
        file,
        line,
        class,
        reason,
        contains(reason, 'not read') AS is_partly_read,
        class <> 'recovered' OR is_partly_read OR contains(reason, 'not whole') AS has_loss
    FROM _rejected_lines
    WHERE class IN ('torn', 'oversize')
        OR (class = 'invalid' AND _bad_id_field(reason) IS NULL)
        OR (class = 'recovered' AND lost_lines IS NULL)
)
SELECT
    'torn_lines' AS code,
    CASE WHEN has_loss THEN 'warning' ELSE 'note' END AS severity,
    CASE class WHEN 'torn' THEN 'line_torn' WHEN 'invalid' THEN 'broken_format' END AS cause,
    CASE WHEN class IN ('torn', 'invalid') THEN 1 END AS confidence,
    NULL::VARCHAR AS run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    file,
    min(line) AS line,
    file || ' ' || class AS place,
    count(*) || CASE WHEN count(*) = 1 THEN ' line of ' ELSE ' lines of ' END || file || CASE class
        WHEN 'torn' THEN ' hold pieces of records that are not whole'
        WHEN 'invalid' THEN ' hold records that break their format'
        WHEN 'oversize' THEN ' are too long to be read'
        ELSE ' hold records among other things; what is whole was read'
    END || ', first at line ' || min(line) || ': ' || arg_min(reason, line) AS message,
    CASE
        WHEN class = 'invalid' OR bool_and(is_partly_read) THEN '`reconstruct lines` shows them; the writer does not keep to the format'
        WHEN class = 'oversize' THEN 'a file without line feeds, or no log at all; `reconstruct lines` shows how they begin'
        WHEN bool_and(starts_with(reason, 'a record; ')) THEN 'what carried the lines changed them; `reconstruct lines` shows how'
        ELSE 'several writers share one file or pipe; let each process write to a file of its own'
    END AS hint,
    json_object('lines', count(*), 'class', class, 'first_lines', list(line ORDER BY line)[:10])
        AS evidence
FROM damaged
GROUP BY file, class, has_loss;

COMMENT ON VIEW _finding_torn_lines IS 'One row is a file with damaged lines of one class.';

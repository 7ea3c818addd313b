-- One row is a class of lines in a file; the classes of a file add up to its physical lines.
CREATE VIEW line_classes AS
WITH class_count AS (
    SELECT
        file,
        class,
        lines
    FROM _class_counts
    UNION ALL
    SELECT
        file,
        class,
        -count(*)
    FROM _duplicate_lines
    WHERE NOT recovered
    GROUP BY file, class
    UNION ALL
    SELECT
        file,
        'duplicate',
        count(*)
    FROM _duplicate_lines
    WHERE NOT recovered
    GROUP BY file
)
SELECT
    file,
    class,
    sum(lines)::BIGINT AS lines
FROM class_count
GROUP BY file, class
HAVING sum(lines) > 0;

COMMENT ON VIEW line_classes IS 'One row is a class of lines in a file; the classes of a file add up to its physical lines.';
COMMENT ON COLUMN line_classes.file IS 'File as it was named.';
COMMENT ON COLUMN line_classes.class IS 'span, span_start, log, metric, process: a record; model_call: a captured model call; joined: the further lines of a record, or of a text, over several; duplicate: a record that another line has already given; recovered: records among other things on the line; json, text, blank: no record; torn: pieces of a record; invalid: a record with a required field missing or wrong; bad_encoding: not UTF-8; oversize: too long to be read.';
COMMENT ON COLUMN line_classes.lines IS 'Physical lines.';

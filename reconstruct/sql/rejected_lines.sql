-- One row is a physical line that is no clean record, and why.
CREATE VIEW rejected_lines AS
SELECT
    file,
    line,
    byte_offset,
    class,
    reason,
    sample,
    lost_lines
FROM _rejected_lines
UNION ALL
SELECT
    file,
    line,
    byte_offset,
    'duplicate',
    'the same record as ' || kept_place,
    '',
    NULL
FROM _duplicate_lines
WHERE NOT recovered;

COMMENT ON VIEW rejected_lines IS 'One row is a physical line that is no clean record, and why.';
COMMENT ON COLUMN rejected_lines.file IS 'File as it was named.';
COMMENT ON COLUMN rejected_lines.line IS 'Physical line, from 1.';
COMMENT ON COLUMN rejected_lines.byte_offset IS 'Where the line begins, bytes from the start of the file, unpacked.';
COMMENT ON COLUMN rejected_lines.class IS 'As in line_classes.';
COMMENT ON COLUMN rejected_lines.reason IS 'Why it is no clean record.';
COMMENT ON COLUMN rejected_lines.sample IS 'Its first characters; … where it was cut.';
COMMENT ON COLUMN rejected_lines.lost_lines IS 'So many lines like it were left out by what wrapped it: Ray prints one of several lines that are alike. Null: none.';

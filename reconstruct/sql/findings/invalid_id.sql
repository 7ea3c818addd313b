-- One row is a file with records whose ids are none: all zeros, of a wrong length, no hex digits.
--
-- What is an id in another spelling (a UUID with dashes, base64, a decimal number) is told with the
-- trace that it would be, and not read as that.
CREATE VIEW _finding_invalid_id AS
WITH
refused AS (
    SELECT
        file,
        line,
        reason,
        _bad_id_field(reason) AS field,
        regexp_extract(reason, ': "?([^"]*)', 1) AS id
    FROM _rejected_lines
    WHERE class = 'invalid' AND _bad_id_field(reason) IS NOT NULL
),
respelled AS (
    SELECT
        file,
        line,
        reason,
        field,
        id,
        regexp_full_match(id, '(0x)?0+') AS is_zero,
        _respelled_id(id, CASE WHEN field = 'trace_id' THEN 32 ELSE 16 END) AS respelled
    FROM refused
),
known AS (
    SELECT
        respelled.file,
        respelled.line,
        respelled.reason,
        respelled.field,
        respelled.id,
        respelled.respelled,
        trace.trace_id,
        CASE
            WHEN respelled.is_zero THEN 'zero'
            WHEN respelled.respelled IS NOT NULL THEN 'respelled'
            ELSE 'none'
        END AS fault
    FROM respelled
    LEFT JOIN traces AS trace
        ON respelled.field = 'trace_id'
        AND trace.trace_id = respelled.respelled
)
SELECT
    'invalid_id' AS code,
    'warning' AS severity,
    CASE WHEN fault = 'respelled' THEN 'id_format' ELSE 'invalid_id' END AS cause,
    CASE
        WHEN fault <> 'respelled' THEN 1
        WHEN count(trace_id) > 0 THEN 0.95
        ELSE 0.7
    END AS confidence,
    NULL::VARCHAR AS run_id,
    min_by(trace_id, line) AS trace_id,
    NULL::VARCHAR AS span_id,
    file,
    min(line) AS line,
    file || ' ' || field || ' ' || fault AS place,
    count(*) || CASE WHEN count(*) = 1 THEN ' record of ' ELSE ' records of ' END || file
        || ' cannot be read, first at line ' || min(line) || ': ' || min_by(reason, line)
        || coalesce(
            '; written as W3C has it, it is ' || min_by(respelled, line) || CASE
                WHEN count(trace_id) > 0 THEN ', a trace of these logs'
                ELSE ''
            END,
            ''
        ) AS message,
    CASE fault
        WHEN 'zero' THEN 'all zeros means no id: what wrote this had no span that was recorded; write nothing then'
        WHEN 'respelled' THEN 'write ids as W3C has them, 32 and 16 hex digits in lower case: only then are they the same everywhere'
        ELSE 'trace ids are 32 hex digits, span ids 16: see what wrote this'
    END AS hint,
    json_object(
        'records', count(*),
        'field', field,
        'id', min_by(id, line),
        'respelled', min_by(respelled, line),
        'known_traces', count(DISTINCT trace_id),
        'first_lines', list(line ORDER BY line)[:10]
    ) AS evidence
FROM known
GROUP BY file, field, fault;

COMMENT ON VIEW _finding_invalid_id IS 'One row is a file with records whose ids are none: all zeros, of a wrong length, no hex digits.';

-- Which id a line was refused for, by the reason that was given; null when for something else.
CREATE MACRO _bad_id_field(reason) AS nullif(
    regexp_extract(reason, '^((?:parent_)?span_id|trace_id) is not ', 1),
    ''
);

COMMENT ON MACRO _bad_id_field IS 'Which id a line was refused for, by the reason that was given; null when for something else.';

-- An id of another spelling as W3C has it, of 32 or 16 digits: a UUID, base64 or a decimal number;
-- null when it is none of these.
CREATE MACRO _respelled_id(id, digits) AS lower(CASE
    WHEN digits = 32
        AND regexp_full_match(id, '[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}')
        THEN replace(id, '-', '')
    WHEN regexp_full_match(id, '[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{11}=')
        AND strlen(hex(TRY(from_base64(id)))) = digits THEN hex(TRY(from_base64(id)))
    WHEN regexp_full_match(id, '[1-9][0-9]{16,38}')
        THEN nullif(lpad(hex(try_cast(id AS UHUGEINT)), digits, '0'), left(id, digits))
END);

COMMENT ON MACRO _respelled_id IS 'An id of another spelling as W3C has it, of 32 or 16 digits; null when it is none.';

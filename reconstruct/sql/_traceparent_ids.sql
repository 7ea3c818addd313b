-- Ids and flags of a traceparent header, or of a JSON list of one: empty texts where it is none.
CREATE MACRO _traceparent_ids(header) AS regexp_extract(
    coalesce(header, ''),
    '^(?:\["?|"?)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})',
    ['trace_id', 'span_id', 'flags']
);

COMMENT ON MACRO _traceparent_ids IS 'Ids and flags of a traceparent header, or of a JSON list of one: empty texts where it is none.';

-- Whether an id of a traceparent header is all zeros, which means none.
CREATE MACRO _is_zero_id(ids) AS ids.trace_id = repeat('0', 32) OR ids.span_id = repeat('0', 16);

COMMENT ON MACRO _is_zero_id IS 'Whether an id of a traceparent header is all zeros, which means none.';

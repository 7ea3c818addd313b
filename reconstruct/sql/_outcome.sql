-- How a span ended, in a word or two: open or lost; cancelled; error or ok, with what made it so.
CREATE MACRO _outcome(state, status_code, attributes) AS CASE
    WHEN state <> 'finished' THEN state
    WHEN status_code = 'ERROR' AND (attributes->>'gymlog.cancelled') = 'true' THEN 'cancelled'
    WHEN status_code = 'ERROR' THEN 'error' || coalesce(
        ' ' || coalesce(
            attributes->>'error.type',
            attributes->>'http.response.status_code',
            attributes->>'http.status_code'
        ),
        ''
    )
    ELSE 'ok' || coalesce(
        ' ' || left(
            coalesce(attributes->>'http.response.status_code', attributes->>'http.status_code'),
            1
        ) || 'xx',
        ''
    )
END;

COMMENT ON MACRO _outcome IS 'How a span ended, in a word or two: open or lost; cancelled; error or ok, with what made it so.';

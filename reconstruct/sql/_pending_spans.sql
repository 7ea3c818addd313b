-- Whether a span has no end of its own. Texts are searched before JSON is read: next to no span has any
-- of these keys.
CREATE MACRO _has_no_end(state, attributes) AS state <> 'finished'
    OR (
        (
            contains(attributes::VARCHAR, 'gymlog.unfinished')
            OR contains(attributes::VARCHAR, 'gymlog.cancelled')
            OR contains(attributes::VARCHAR, 'nemo.span.truncated')
        )
        AND coalesce(
            'true' IN (
                attributes->>'gymlog.unfinished',
                attributes->>'gymlog.cancelled',
                attributes->>'nemo.span.truncated'
            ),
            FALSE
        )
    );

COMMENT ON MACRO _has_no_end IS 'Whether a span has no end of its own: it is open, was lost with its process, or was ended by a shutdown or by being cancelled.';

-- One row is a span (node: its rowid in spans) that has no end of its own, and how it is without one
-- (ending): open, lost with its process, shutdown (ended because its process stopped), cancelled.
CREATE VIEW _pending_spans AS
SELECT
    rowid AS node,
    CASE
        WHEN state <> 'finished' THEN state
        WHEN 'true' IN (
            attributes->>'gymlog.unfinished',
            attributes->>'nemo.span.truncated'
        ) THEN 'shutdown'
        ELSE 'cancelled'
    END AS ending
FROM spans
WHERE _has_no_end(state, attributes);

COMMENT ON VIEW _pending_spans IS 'One row is a span (node: its rowid in spans) that has no end of its own, and how it is without one (ending): open, lost, shutdown, cancelled.';

-- One row is a span (node: its rowid in spans) that had begun and not ended at an instant, ns since
-- 1970; with null, one that has no end of its own when the logs end.
--
-- ending is how it was then: open; lost, when its process had given its last sign of life; without an
-- instant also shutdown and cancelled (see _pending_spans).
CREATE MACRO _running_at(instant) AS TABLE (
    SELECT
        pending.node,
        pending.ending,
        coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns)
            AS seen_until_unix_nano
    FROM _pending_spans AS pending
    JOIN spans AS span ON span.rowid = pending.node
    WHERE instant IS NULL
    UNION ALL
    SELECT
        rowid,
        CASE
            WHEN state = 'lost' AND start_time_unix_nano + open_ns < instant THEN 'lost'
            ELSE 'open'
        END,
        least(start_time_unix_nano + open_ns, instant)
    FROM spans
    WHERE start_time_unix_nano <= instant
        AND (end_time_unix_nano IS NULL OR end_time_unix_nano > instant)
);

COMMENT ON MACRO TABLE _running_at IS 'One row is a span (node: its rowid in spans) that had begun and not ended at an instant, ns since 1970; with null, one that has no end of its own when the logs end.';

-- One row is a stretch of a rollout's wall time, the span that the rollout waited for then (node: its
-- rowid in spans), and what the time was spent on. The stretches of a rollout lie end to end.
--
-- They are the sections of its critical path, each of the kind of work that its span's own time is
-- (_span_works), and cut where what counts more begins or ends, the first of:
--   event_loop_lag   its process's event loop was stalled by another span's work; while a call had not
--                    begun on the other side, that one's
--   retry            a try of a call, and the pause after it, when the call was tried again
--   model, tool …    a call off the path was under way while the rollout's own work went on: calls
--                    that overlap count once
CREATE VIEW _rollout_work AS
WITH
work AS MATERIALIZED (
    FROM _span_works
),
stall AS MATERIALIZED (
    FROM _stalls
),
section AS MATERIALIZED (
    SELECT
        path.run_id,
        path.rollout_id,
        path.node,
        path.is_assumed,
        work.instance,
        path.start_time,
        path.end_time,
        coalesce(work.own_work, 'unaccounted') AS own_work,
        CASE WHEN work.is_tried_before THEN 'retry' ELSE 'queue' END AS before_half,
        work.first_half_unix_nano AS first_half,
        work.first_half_instance,
        work.tried_until_unix_nano AS tried_until
    FROM _rollout_sections AS path
    LEFT JOIN work USING (node)
),
-- Calls that a stalled event loop on the other side kept waiting.
kept_waiting AS (
    SELECT
        call.rollout_id,
        call.node,
        call.start_time
    FROM section AS call
    SEMI JOIN stall ON stall.instance = call.first_half_instance
    ASOF JOIN stall
        ON stall.instance = call.first_half_instance
        AND stall.start_time_unix_nano < least(call.first_half, call.end_time)
    WHERE call.before_half = 'queue'
        AND call.start_time < call.first_half
        AND stall.end_time_unix_nano > call.start_time
),
-- A call's own time is cut where its first half begins.
half AS MATERIALIZED (
    SELECT
        section.run_id,
        section.rollout_id,
        section.node,
        section.is_assumed,
        CASE
            WHEN kept_waiting.node IS NULL THEN section.instance
            ELSE section.first_half_instance
        END AS instance,
        section.start_time,
        CASE
            WHEN section.start_time < section.first_half
                THEN least(section.end_time, section.first_half)
            ELSE section.end_time
        END AS end_time,
        CASE
            WHEN section.start_time < section.first_half THEN section.before_half
            ELSE section.own_work
        END AS spent_on
    FROM section
    LEFT JOIN kept_waiting USING (rollout_id, node, start_time)
    UNION ALL BY NAME
    SELECT
        run_id,
        rollout_id,
        node,
        is_assumed,
        instance,
        first_half AS start_time,
        end_time,
        own_work AS spent_on
    FROM section
    WHERE start_time < first_half AND end_time > first_half
),
overlay AS MATERIALIZED (
    SELECT DISTINCT
        run_id,
        rollout_id,
        'retry' AS kind,
        node,
        first_half AS start_time,
        tried_until AS end_time
    FROM section
    WHERE tried_until > first_half
    UNION ALL
    SELECT
        member.run_id,
        member.rollout_id,
        call.kind,
        call.node,
        member.start_time_unix_nano,
        member.seen_until_unix_nano
    FROM (
        SELECT
            call_node AS node,
            min(call_work) AS kind
        FROM work
        WHERE call_node NOT IN (
            SELECT node
            FROM section
            WHERE node IS NOT NULL
        )
        GROUP BY call_node
    ) AS call
    JOIN _rollout_spans AS member USING (node)
    WHERE member.seen_until_unix_nano > member.start_time_unix_nano
),
overlaid_rollout AS MATERIALIZED (
    SELECT DISTINCT
        run_id,
        rollout_id
    FROM overlay
),
event AS (
    SELECT
        half.run_id,
        half.rollout_id,
        half.start_time AS time,
        half,
        NULL AS kind,
        0 AS change
    FROM half
    JOIN overlaid_rollout AS overlaid
        ON overlaid.run_id IS NOT DISTINCT FROM half.run_id
        AND overlaid.rollout_id = half.rollout_id
    UNION ALL
    SELECT
        run_id,
        rollout_id,
        unnest([start_time, end_time]),
        NULL,
        kind,
        unnest([1, -1])
    FROM overlay
),
swept AS (
    SELECT
        last_value(half IGNORE NULLS) OVER by_time AS half,
        time,
        lead(time) OVER by_time AS next_time,
        sum(change) FILTER (kind = 'retry') OVER by_time AS retries,
        sum(change) FILTER (kind = 'model') OVER by_time AS models,
        sum(change) FILTER (kind = 'sandbox') OVER by_time AS sandboxes,
        sum(change) FILTER (kind = 'tool') OVER by_time AS tools,
        sum(change) FILTER (kind = 'verify') OVER by_time AS verifications
    FROM event
    WINDOW by_time AS (PARTITION BY run_id, rollout_id ORDER BY time)
),
piece AS MATERIALIZED (
    SELECT half.*
    FROM half
    ANTI JOIN overlaid_rollout AS overlaid
        ON overlaid.run_id IS NOT DISTINCT FROM half.run_id
        AND overlaid.rollout_id = half.rollout_id
    UNION ALL BY NAME
    SELECT
        half.run_id,
        half.rollout_id,
        half.node,
        half.is_assumed,
        half.instance,
        time AS start_time,
        least(coalesce(next_time, half.end_time), half.end_time) AS end_time,
        CASE
            WHEN retries > 0 THEN 'retry'
            WHEN half.spent_on NOT IN ('agent', 'unaccounted') THEN half.spent_on
            WHEN models > 0 THEN 'model'
            WHEN sandboxes > 0 THEN 'sandbox'
            WHEN tools > 0 THEN 'tool'
            WHEN verifications > 0 THEN 'verify'
            ELSE half.spent_on
        END AS spent_on
    FROM swept
    WHERE coalesce(next_time, half.end_time) > time AND time < half.end_time
),
-- Stalls of a process lie apart and are numbered in order of time, so the first and the last within
-- a piece tell all between.
stalled AS MATERIALIZED (
    SELECT
        piece.*,
        stall.culprit,
        greatest(stall.start_time_unix_nano, piece.start_time) AS stall_start,
        least(stall.end_time_unix_nano, piece.end_time) AS stall_end
    FROM (
        SELECT
            piece.*,
            unnest(range(earliest.number, latest.number + 1)) AS stall_number
        FROM piece
        SEMI JOIN stall USING (instance)
        ASOF JOIN stall AS earliest
            ON earliest.instance = piece.instance
            AND earliest.end_time_unix_nano > piece.start_time
        ASOF JOIN stall AS latest
            ON latest.instance = piece.instance
            AND latest.start_time_unix_nano < piece.end_time
    ) AS piece
    JOIN stall
        ON stall.instance = piece.instance
        AND stall.number = piece.stall_number
    WHERE NOT coalesce(list_contains(stall.culprits, piece.node), FALSE)
),
stretch AS (
    SELECT piece.*
    FROM piece
    ANTI JOIN stalled USING (node, start_time, rollout_id)
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (start_time, end_time, spent_on, stall_number, stall_start, stall_end),
        stall_start AS start_time,
        stall_end AS end_time,
        'event_loop_lag' AS spent_on
    FROM stalled
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (start_time, end_time, stall_number, culprit, stall_start, stall_end),
        unnest([
            coalesce(lag(stall_end) OVER in_order, start_time),
            CASE WHEN lead(stall_end) OVER in_order IS NULL THEN stall_end ELSE end_time END
        ]) AS start_time,
        unnest([stall_start, end_time]) AS end_time
    FROM stalled
    WINDOW in_order AS (PARTITION BY rollout_id, node, start_time ORDER BY stall_start)
)
SELECT
    run_id,
    rollout_id,
    node,
    start_time,
    end_time,
    spent_on,
    culprit,
    is_assumed
FROM stretch
WHERE end_time > start_time;

COMMENT ON VIEW _rollout_work IS 'One row is a stretch of a rollout''s wall time, the span that the rollout waited for then (node: its rowid in spans), and what the time was spent on; of event_loop_lag also whose work it was that stalled the loop (culprit: its rowid).';

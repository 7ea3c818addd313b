-- One row is a span that failed of itself (node: its rowid in spans), how, the highest span that
-- failed for it (failed_node), and what it waited for (waited_node).
--
-- That a span failed because its child did is taken for granted, so the cause is the deepest
-- failed span without a failed child. Work that was cancelled is no cause but a consequence of
-- what failed above it, through whatever was unfinished or cancelled in between: a caller that
-- gave up, say. Nor is a child that failed after its caller had timed out the cause of that. Only
-- where nothing above it failed is the uppermost cancelled span itself the cause.
--
-- What a failed span waited for is the deepest unfinished span among those below it, else the
-- deepest cancelled one; of a timeout, else a child that went on longer.
--
-- Chains of any length are climbed by doubling (see _edges).
CREATE VIEW _error_causes AS
WITH RECURSIVE
suspect AS (
    SELECT
        rowid AS node,
        span_id,
        state <> 'finished'
            OR (
                contains(attributes::VARCHAR, '"gymlog.unfinished"')
                AND (attributes->>'gymlog.unfinished') IS NOT DISTINCT FROM 'true'
            ) AS is_unfinished,
        status_code IS NOT DISTINCT FROM 'ERROR' AS has_failed,
        status_message,
        attributes,
        events,
        start_time_unix_nano,
        end_time_unix_nano
    FROM spans
    WHERE trace_id IN (
        SELECT trace_id
        FROM traces
        WHERE error_count > 0
    )
),
failure AS MATERIALIZED (
    SELECT
        node,
        coalesce(said[1], exception_types[-1], said[2], said[3]) AS error_type,
        coalesce(exception_messages[-1], status_message) AS message,
        said[4] IS NOT DISTINCT FROM 'true' AS is_marked
    FROM (
        SELECT
            node,
            status_message,
            attributes->>[
                'error.type',
                'http.response.status_code',
                'http.status_code',
                'gymlog.cancelled'
            ] AS said,
            CASE
                WHEN events::VARCHAR <> '[]' THEN events->>'$[*].attributes."exception.type"'
            END AS exception_types,
            CASE
                WHEN events::VARCHAR <> '[]' THEN events->>'$[*].attributes."exception.message"'
            END AS exception_messages
        FROM suspect
        WHERE has_failed
    )
),
judged AS MATERIALIZED (
    SELECT
        node,
        error_type,
        message,
        is_marked
            OR regexp_matches(coalesce(error_type, ''), '(?i)cancell?ed|ClientDisconnect')
            OR regexp_full_match(coalesce(message, ''), '(?i)(context |request )?cancell?ed')
            AS is_cancelled,
        regexp_matches(
            concat_ws(' ', error_type, message),
            '(?i)timed?[ -]?out|deadline[ _]?exceeded|^(408|504)$'
        )
            OR regexp_matches(coalesce(message, ''), '^(408|504)\b') AS has_timed_out
    FROM failure
),
troubled AS MATERIALIZED (
    SELECT
        suspect.node,
        edge.parent,
        suspect.span_id,
        suspect.is_unfinished,
        judged.is_cancelled AND NOT suspect.is_unfinished AS is_cancelled,
        judged.node IS NOT NULL AND NOT judged.is_cancelled AND NOT suspect.is_unfinished AS is_own,
        judged.has_timed_out,
        judged.error_type,
        judged.message,
        suspect.start_time_unix_nano,
        suspect.end_time_unix_nano
    FROM suspect
    JOIN _edges AS edge USING (node)
    LEFT JOIN judged USING (node)
    WHERE suspect.is_unfinished OR suspect.has_failed
),
-- A chain is of failures, or of what was left: unfinished or cancelled.
link AS MATERIALIZED (
    SELECT
        lower.node,
        CASE
            WHEN lower.is_own = upper.is_own AND NOT (
                lower.is_own
                AND upper.has_timed_out
                AND lower.end_time_unix_nano > upper.end_time_unix_nano
            ) THEN upper.node
        END AS next_node,
        CASE WHEN upper.is_own AND NOT lower.is_own THEN upper.node END AS failed_parent,
        coalesce(upper.is_cancelled, FALSE) AS has_cancelled_parent
    FROM troubled AS lower
    LEFT JOIN troubled AS upper ON upper.node = lower.parent
),
climb AS (
    SELECT
        node,
        next_node AS ancestor,
        coalesce(next_node, node) AS top,
        (next_node IS NOT NULL)::BIGINT AS steps,
        count(next_node) OVER () AS climbing
    FROM link
    UNION ALL
    SELECT
        lower.node,
        upper.ancestor,
        coalesce(upper.top, lower.top),
        lower.steps + coalesce(upper.steps, 0),
        count(upper.ancestor) OVER ()
    FROM climb AS lower
    LEFT JOIN climb AS upper ON upper.node = lower.ancestor
    WHERE lower.climbing > 0
),
placed AS MATERIALIZED (
    SELECT
        climb.node,
        climb.top,
        climb.steps,
        top_link.failed_parent AS failed_above
    FROM climb
    JOIN link AS top_link ON top_link.node = climb.top
    WHERE climb.climbing = 0
),
cause AS MATERIALIZED (
    SELECT
        troubled.node,
        CASE
            WHEN troubled.is_cancelled THEN 'cancelled'
            WHEN troubled.has_timed_out THEN 'timeout'
            ELSE 'failed'
        END AS cause,
        troubled.error_type,
        troubled.message,
        CASE WHEN troubled.is_own THEN placed.top ELSE troubled.node END AS failed_node,
        troubled.end_time_unix_nano
    FROM troubled
    JOIN placed USING (node)
    JOIN link USING (node)
    WHERE CASE
        WHEN troubled.is_own THEN troubled.node NOT IN (
            SELECT next_node
            FROM link
            WHERE next_node IS NOT NULL
        )
        ELSE troubled.is_cancelled
            AND NOT link.has_cancelled_parent
            AND placed.failed_above IS NULL
    END
),
left_behind AS (
    SELECT
        placed.failed_above AS node,
        troubled.node AS waited_node,
        CASE WHEN troubled.is_unfinished THEN 'unfinished' ELSE 'cancelled' END AS outcome,
        placed.steps,
        troubled.start_time_unix_nano,
        troubled.span_id
    FROM placed
    JOIN troubled USING (node)
    WHERE placed.failed_above IS NOT NULL
    UNION ALL
    SELECT
        cause.node,
        child.node,
        'late',
        0,
        child.start_time_unix_nano,
        child.span_id
    FROM cause
    JOIN _edges AS edge ON edge.parent = cause.node
    JOIN suspect AS child ON child.node = edge.node
    WHERE cause.cause = 'timeout' AND edge.end_time_unix_nano > cause.end_time_unix_nano
),
waited AS (
    SELECT
        node,
        waited_node,
        outcome
    FROM left_behind
    QUALIFY row_number() OVER (
        PARTITION BY node
        ORDER BY
            list_position(['unfinished', 'cancelled', 'late'], outcome),
            steps DESC,
            start_time_unix_nano,
            span_id,
            waited_node
    ) = 1
)
SELECT
    cause.node,
    cause.cause,
    cause.error_type,
    cause.message,
    cause.failed_node,
    top.parent IS NULL AS has_reached_root,
    waited.waited_node,
    waited.outcome AS waited_outcome
FROM cause
JOIN _edges AS top ON top.node = cause.failed_node
LEFT JOIN waited ON waited.node = cause.node;

COMMENT ON VIEW _error_causes IS 'One row is a span that failed of itself (node: its rowid in spans), how, the highest span that failed for it, and what it waited for.';

-- One row is a pair of clocks in a stretch of time, and how far the second was ahead of the first.
--
-- Neighbouring pieces that agree are one stretch: 0 is within both, or the middle of the narrower
-- within the other.
-- Where 0 is among the answers, it is the answer; else it is the middle. Where more than a quarter
-- of the calls contradict even so, it is the median of the middles of all bounds, give or take
-- what 90 % of these differ by.
--
-- Between two stretches lies the middle between the last call of one and the first of the next, on
-- each of the two clocks.
CREATE VIEW _clock_stretches AS
WITH RECURSIVE
piece AS MATERIALIZED (
    SELECT
        *,
        middles IS NOT NULL AS is_median,
        row_number() OVER (PARTITION BY first, second ORDER BY place) AS number
    FROM _clock_pieces
),
grown AS (
    SELECT
        first,
        second,
        number,
        number AS stretch,
        lower,
        upper,
        is_median
    FROM piece
    WHERE number = 1
    UNION ALL
    SELECT
        first,
        second,
        number,
        CASE WHEN is_same THEN stretch ELSE number END,
        CASE WHEN is_same THEN greatest(lower, lower_before) ELSE lower END,
        CASE WHEN is_same THEN least(upper, upper_before) ELSE upper END,
        is_median
    FROM (
        SELECT
            piece.*,
            grown.stretch,
            grown.lower AS lower_before,
            grown.upper AS upper_before,
            NOT piece.is_median AND NOT grown.is_median AND CASE
                WHEN greatest(piece.lower, grown.lower) <= 0
                    AND least(piece.upper, grown.upper) >= 0
                    THEN TRUE
                WHEN piece.upper - piece.lower < grown.upper - grown.lower
                    THEN (piece.lower + piece.upper) // 2 BETWEEN grown.lower AND grown.upper
                ELSE (grown.lower + grown.upper) // 2 BETWEEN piece.lower AND piece.upper
            END AS is_same
        FROM grown
        JOIN piece
            ON piece.first = grown.first
            AND piece.second = grown.second
            AND piece.number = grown.number + 1
    )
),
stretch AS (
    SELECT
        piece.first,
        piece.second,
        grown.stretch,
        count(*) OVER (PARTITION BY piece.first, piece.second) AS stretches,
        sum(piece.calls)::BIGINT AS calls,
        sum(piece.contradicting)::BIGINT AS contradicting,
        any_value(piece.pair_excluded) AS pair_excluded,
        bool_or(piece.is_median) AS is_median,
        CASE
            WHEN bool_or(piece.is_median) THEN any_value(piece.middles[1])
            ELSE max(piece.lower)
        END AS lower,
        CASE
            WHEN bool_or(piece.is_median) THEN any_value(piece.middles[3])
            ELSE min(piece.upper)
        END AS upper,
        any_value(piece.middles[2]) AS median,
        min(piece.first_start) AS first_start,
        max(piece.first_end) AS first_end,
        min(piece.second_start) AS second_start,
        max(piece.second_end) AS second_end
    FROM piece
    JOIN grown USING (first, second, number)
    GROUP BY piece.first, piece.second, grown.stretch
)
SELECT
    first,
    second,
    CASE
        WHEN calls = 0 THEN NULL
        WHEN stretches > 1 THEN 'buckets'
        WHEN is_median THEN 'median'
        WHEN lower <= 0 AND upper >= 0 THEN 'none'
        ELSE 'bounds'
    END AS method,
    calls,
    contradicting,
    pair_excluded,
    CASE
        WHEN is_median THEN median
        WHEN lower <= 0 AND upper >= 0 THEN 0
        ELSE (lower + upper) // 2
    END AS offset_ns,
    lower AS lower_ns,
    upper AS upper_ns,
    first_start,
    first_end,
    second_start,
    second_end,
    (lag(first_end) OVER (PARTITION BY first, second ORDER BY stretch) + first_start) // 2
        AS first_from,
    (first_end + lead(first_start) OVER (PARTITION BY first, second ORDER BY stretch)) // 2
        AS first_until,
    (lag(second_end) OVER (PARTITION BY first, second ORDER BY stretch) + second_start) // 2
        AS second_from,
    (second_end + lead(second_start) OVER (PARTITION BY first, second ORDER BY stretch)) // 2
        AS second_until
FROM stretch;

COMMENT ON VIEW _clock_stretches IS 'One row is a pair of clocks in a stretch of time, and how far the second was ahead of the first.';

-- One row is a pair of clocks in a piece of time, and what the calls in it say of their offset: how
-- far the second was ahead of the first.
--
-- The calls between two clocks, both ways, each bound the offset from both sides; where all bounds
-- have something in common, that is the answer for the whole run. Where they have nothing, the
-- answer is what most calls have in common, and the others contradict it. If a clock was set, or
-- runs at another speed, calls that are close in time contradict each other less: so they are
-- halved in order of time, six times at most, and of all ways to put the pieces together the
-- cheapest is taken. A call that contradicts costs 2; a piece costs 2 % of the pair's calls, at
-- least the square root of their number, which is about what halving gains where offsets differ at
-- random. So a few odd calls here and there make no clock step. Where no more than 1 % contradict,
-- no pieces are tried.
--
-- A server may go on after its client has all it wants, so its end is weak evidence. Where calls
-- contradict each other, and at most a quarter of them speaks against 0 by its ends and 1 % by its
-- starts, 0 is what is taken.
CREATE VIEW _clock_pieces AS
WITH RECURSIVE
bound AS MATERIALIZED (
    SELECT
        least(client_number, server_number) AS first,
        greatest(client_number, server_number) AS second,
        CASE WHEN client_number < server_number THEN client_start ELSE server_start END
            AS first_time,
        CASE WHEN client_number < server_number THEN server_start ELSE client_start END
            AS second_time,
        CASE WHEN client_number < server_number THEN lower_ns ELSE -upper_ns END AS lower,
        CASE WHEN client_number < server_number THEN upper_ns ELSE -lower_ns END AS upper,
        lower_ns > 0 AS is_late,
        upper_ns < 0 AS is_early,
        excluded IS NOT NULL AS is_excluded
    FROM _clock_bounds_of(NULL)
),
pair AS MATERIALIZED (
    SELECT
        first,
        second,
        count(*) FILTER (NOT is_excluded) AS calls,
        count(*) FILTER (is_excluded) AS excluded_calls,
        max(lower) FILTER (NOT is_excluded) AS lower,
        min(upper) FILTER (NOT is_excluded) AS upper,
        min(first_time) FILTER (NOT is_excluded) AS first_start,
        max(first_time) FILTER (NOT is_excluded) AS first_end,
        min(second_time) FILTER (NOT is_excluded) AS second_start,
        max(second_time) FILTER (NOT is_excluded) AS second_end
    FROM bound
    GROUP BY first, second
),
torn_pair AS MATERIALIZED (
    SELECT
        bound.first,
        bound.second,
        any_value(pair.calls) AS calls,
        CASE
            WHEN quantile_disc(bound.lower, 0.995) <= quantile_disc(bound.upper, 0.005) THEN 0
            ELSE 6
        END AS deepest
    FROM bound
    JOIN pair USING (first, second)
    WHERE NOT bound.is_excluded AND pair.lower > pair.upper
    GROUP BY bound.first, bound.second
),
ranked AS MATERIALIZED (
    SELECT
        bound.first,
        bound.second,
        bound.first_time,
        bound.second_time,
        bound.lower,
        bound.upper,
        bound.is_late,
        bound.is_early,
        pair.calls AS pair_calls,
        pair.deepest,
        -- By the sum of both clocks' times, since either may have been set back.
        row_number() OVER (
            PARTITION BY bound.first, bound.second
            ORDER BY bound.first_time + bound.second_time, bound.first_time, lower, upper
        ) - 1 AS rank
    FROM bound
    JOIN torn_pair AS pair USING (first, second)
    WHERE NOT bound.is_excluded
),
placed AS MATERIALIZED (
    SELECT
        ranked.*,
        level.level,
        (ranked.rank << level.level) // ranked.pair_calls AS piece
    FROM ranked
    JOIN (SELECT unnest(range(7)) AS level) AS level ON level.level <= ranked.deepest
),
measured AS MATERIALIZED (
    SELECT
        first,
        second,
        level,
        piece,
        count(*) AS calls,
        any_value(greatest(pair_calls // 50, floor(sqrt(pair_calls))::BIGINT)) AS piece_cost,
        any_value(deepest) AS deepest,
        max(lower) AS lower,
        min(upper) AS upper,
        count(*) FILTER (is_late) AS late,
        count(*) FILTER (is_early) AS early,
        max(lower) FILTER (lower <= 0) AS lower_of_0,
        min(upper) FILTER (upper >= 0) AS upper_of_0,
        min(first_time) AS first_start,
        max(first_time) AS first_end,
        min(second_time) AS second_start,
        max(second_time) AS second_end
    FROM placed
    GROUP BY first, second, level, piece
),
turn AS (
    SELECT
        first,
        second,
        level,
        piece,
        unnest([placed.lower, placed.upper]) AS place,
        unnest([1, -1]) AS step
    FROM placed
    SEMI JOIN (
        FROM measured
        WHERE lower > upper
    ) AS torn USING (first, second, level, piece)
),
crowd AS (
    SELECT
        first,
        second,
        level,
        piece,
        place AS lower,
        lead(place) OVER (
            PARTITION BY first, second, level, piece
            ORDER BY place, step DESC
        ) AS upper,
        sum(step) OVER (
            PARTITION BY first, second, level, piece
            ORDER BY place, step DESC
            ROWS UNBOUNDED PRECEDING
        ) AS calls
    FROM turn
),
agreed AS (
    SELECT
        first,
        second,
        level,
        piece,
        max((calls, lower <= 0 AND upper >= 0, upper - lower, -lower)) AS best
    FROM crowd
    GROUP BY first, second, level, piece
),
candidate AS MATERIALIZED (
    SELECT
        measured.* EXCLUDE (lower, upper),
        coalesce(measured.calls - agreed.best[1]::BIGINT, 0) AS contradicting,
        coalesce(-agreed.best[4], measured.lower) AS lower,
        coalesce(agreed.best[3] - agreed.best[4], measured.upper) AS upper
    FROM measured
    LEFT JOIN agreed USING (first, second, level, piece)
),
choice AS (
    SELECT
        first,
        second,
        level,
        piece,
        2 * contradicting + piece_cost AS cost,
        [{'level': level, 'piece': piece}] AS chosen
    FROM candidate
    WHERE level = deepest
    UNION ALL
    SELECT
        own.first,
        own.second,
        own.level,
        own.piece,
        least(2 * own.contradicting + own.piece_cost, below.cost),
        CASE
            WHEN 2 * own.contradicting + own.piece_cost <= below.cost
                THEN [{'level': own.level, 'piece': own.piece}]
            ELSE below.chosen
        END
    FROM (
        SELECT
            first,
            second,
            level - 1 AS level,
            piece // 2 AS piece,
            sum(cost)::BIGINT AS cost,
            flatten(list(chosen)) AS chosen
        FROM choice
        GROUP BY ALL
    ) AS below
    JOIN candidate AS own USING (first, second, level, piece)
),
chosen AS MATERIALIZED (
    SELECT
        candidate.*,
        contradicting > 0 AND late * 4 <= calls AND early * 100 <= calls AS is_0
    FROM (
        SELECT
            first,
            second,
            unnest(chosen, recursive := TRUE)
        FROM choice
        WHERE level = 0
    )
    JOIN candidate USING (first, second, level, piece)
),
middle AS (
    SELECT
        first,
        second,
        level,
        piece,
        quantile_disc((placed.lower + placed.upper) // 2, [0.05, 0.5, 0.95]) AS middles
    FROM placed
    SEMI JOIN (
        FROM chosen
        WHERE contradicting * 4 > calls AND NOT is_0
    ) AS undecided USING (first, second, level, piece)
    GROUP BY first, second, level, piece
)
SELECT
    chosen.first,
    chosen.second,
    chosen.piece << (6 - chosen.level) AS place,
    chosen.calls,
    CASE WHEN is_0 THEN late + early ELSE contradicting END AS contradicting,
    pair.excluded_calls AS pair_excluded,
    CASE WHEN is_0 THEN lower_of_0 ELSE chosen.lower END AS lower,
    CASE WHEN is_0 THEN upper_of_0 ELSE chosen.upper END AS upper,
    middle.middles,
    chosen.first_start,
    chosen.first_end,
    chosen.second_start,
    chosen.second_end
FROM chosen
JOIN pair USING (first, second)
LEFT JOIN middle USING (first, second, level, piece)
UNION ALL
SELECT
    first,
    second,
    0,
    calls,
    0,
    excluded_calls,
    lower,
    upper,
    NULL,
    first_start,
    first_end,
    second_start,
    second_end
FROM pair
WHERE lower <= upper OR calls = 0;

COMMENT ON VIEW _clock_pieces IS 'One row is a pair of clocks in a piece of time, and what the calls in it say of their offset: how far the second was ahead of the first.';

-- One row is a clock that calls link to others, and the clock next to it on the way to its
-- reference: parent, null of a reference.
--
-- Of all ways to link the clocks it is the one with the most calls (a maximum spanning tree). A
-- reference is the clock on which most traces begin, then the one with most spans. From the
-- references on, the link with the most calls is followed to a clock that is not reached yet; a
-- link that is the best of such a clock may be followed at once.
CREATE VIEW _clock_tree AS
WITH RECURSIVE
pair AS MATERIALIZED (
    SELECT
        first,
        second,
        sum(calls)::BIGINT AS calls
    FROM _clock_stretches
    WHERE calls > 0
    GROUP BY first, second
),
link AS MATERIALIZED (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY number
            ORDER BY calls DESC, least(number, other), greatest(number, other)
        ) = 1 AS is_best
    FROM (
        SELECT first AS number, second AS other, calls FROM pair
        UNION ALL
        SELECT second, first, calls FROM pair
    )
),
standing AS MATERIALIZED (
    SELECT
        name.number,
        row_number() OVER (ORDER BY clock.root_count DESC, clock.span_count DESC, clock.clock)
            AS place
    FROM clocks AS clock
    JOIN _clock_names AS name USING (clock)
    WHERE name.number IN (SELECT number FROM link)
),
tree(number, parent) USING KEY (number) AS (
    SELECT
        number,
        NULL::BIGINT
    FROM standing
    WHERE place = 1
    UNION ALL
    SELECT
        number,
        parent
    FROM (
        SELECT
            link.number,
            link.other AS parent,
            link.calls,
            link.is_best,
            0 AS place
        FROM recurring.tree AS reached
        JOIN link ON link.other = reached.number
        ANTI JOIN recurring.tree AS known ON known.number = link.number
        UNION ALL
        SELECT
            standing.number,
            NULL,
            NULL,
            FALSE,
            standing.place
        FROM standing
        ANTI JOIN recurring.tree AS known ON known.number = standing.number
    )
    QUALIFY is_best OR row_number() OVER (
        ORDER BY
            parent IS NULL,
            calls DESC,
            least(number, parent),
            greatest(number, parent),
            place
    ) = 1
)
SELECT
    number,
    parent
FROM tree;

COMMENT ON VIEW _clock_tree IS 'One row is a clock that calls link to others, and the clock next to it on the way to its reference: parent, null of a reference.';

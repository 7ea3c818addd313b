-- One row is a clock in a stretch of time, and how far it was ahead of its reference: an estimate.
--
-- Of all ways to link the clocks the one with the most calls is taken (a maximum spanning tree). A
-- reference is the clock on which most traces begin, then the one with most spans. From there on,
-- the link with the most calls is followed to a clock that is not reached yet; a link that is the
-- best of such a clock may be followed at once. Where none leads on, there is another reference.
--
-- Offsets add up along the way to the reference, and so do their uncertainties. Where the offset of
-- a clock on the way changed, that divides the times of all clocks behind it.
CREATE VIEW clock_offsets AS
WITH RECURSIVE
stretch AS MATERIALIZED (
    FROM _clock_stretches
),
pair AS MATERIALIZED (
    SELECT
        first,
        second,
        sum(calls)::BIGINT AS calls
    FROM stretch
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
),
hop AS MATERIALIZED (
    SELECT
        tree.number,
        tree.parent,
        stretch.method,
        CASE WHEN tree.number = stretch.second THEN offset_ns ELSE -offset_ns END AS offset_ns,
        greatest(upper_ns - offset_ns, offset_ns - lower_ns) AS uncertainty_ns,
        stretch.calls,
        stretch.contradicting,
        stretch.pair_excluded,
        CASE WHEN tree.number = stretch.second THEN second_from ELSE first_from END AS from_time,
        CASE WHEN tree.number = stretch.second THEN second_until ELSE first_until END AS until_time
    FROM tree
    JOIN stretch
        ON stretch.first = least(tree.number, tree.parent)
        AND stretch.second = greatest(tree.number, tree.parent)
    WHERE tree.parent IS NOT NULL
),
chain AS (
    SELECT
        number,
        number AS reference,
        NULL::BIGINT AS parent,
        NULL::BIGINT AS from_time,
        NULL::BIGINT AS until_time,
        0::BIGINT AS offset_ns,
        CASE WHEN number IN (SELECT parent FROM hop) THEN 0::BIGINT END AS uncertainty_ns,
        CASE WHEN number IN (SELECT parent FROM hop) THEN 'reference' ELSE 'alone' END AS method,
        NULL::BIGINT AS calls,
        NULL::BIGINT AS contradicting,
        NULL::BIGINT AS pair_excluded
    FROM _clock_names
    WHERE number NOT IN (SELECT number FROM hop)
    UNION ALL
    SELECT
        number,
        reference,
        parent,
        from_time,
        until_time,
        offset_ns,
        uncertainty_ns,
        method,
        calls,
        contradicting,
        pair_excluded
    FROM (
        SELECT
            hop.number,
            chain.reference,
            hop.parent,
            greatest(hop.from_time, chain.from_time + hop.offset_ns) AS from_time,
            least(hop.until_time, chain.until_time + hop.offset_ns) AS until_time,
            chain.offset_ns + hop.offset_ns AS offset_ns,
            chain.uncertainty_ns + hop.uncertainty_ns AS uncertainty_ns,
            hop.method,
            hop.calls,
            hop.contradicting,
            hop.pair_excluded
        FROM chain
        JOIN hop ON hop.parent = chain.number
    )
    WHERE coalesce(from_time < until_time, TRUE)
)
SELECT
    own.clock,
    reference.clock AS reference_clock,
    parent.clock AS parent_clock,
    chain.from_time AS from_unix_nano,
    chain.until_time AS until_unix_nano,
    chain.method,
    chain.offset_ns,
    chain.uncertainty_ns,
    chain.calls,
    chain.contradicting AS contradicting_calls,
    chain.pair_excluded AS excluded_calls
FROM chain
JOIN _clock_names AS own ON own.number = chain.number
JOIN _clock_names AS reference ON reference.number = chain.reference
LEFT JOIN _clock_names AS parent ON parent.number = chain.parent;

COMMENT ON VIEW clock_offsets IS 'One row is a clock in a stretch of time, and how far it was ahead of its reference: an estimate.';
COMMENT ON COLUMN clock_offsets.clock IS 'Name of the clock, as in clocks: its host, with the boot where it has several; the process where neither is known.';
COMMENT ON COLUMN clock_offsets.reference_clock IS 'What it is compared with: of all clocks that calls link, the one on which most traces begin; itself where nothing links it to another.';
COMMENT ON COLUMN clock_offsets.parent_clock IS 'The clock that it was measured against, the first on the way to the reference: where most calls lead; null of a reference.';
COMMENT ON COLUMN clock_offsets.from_unix_nano IS 'Start of the stretch by this clock, ns since 1970; null: from the beginning.';
COMMENT ON COLUMN clock_offsets.until_unix_nano IS 'End of the stretch by this clock, ns since 1970; null: to the end.';
COMMENT ON COLUMN clock_offsets.method IS 'How it was measured against its parent; none: no skew, 0 is within the bounds of all calls, or of nearly all. bounds: the middle of what the bounds of all calls have in common, or of most (contradicting_calls). buckets: its offset changed (a clock was set, or drifts), a row for each stretch of time. median: more than a quarter of the calls contradict each other at all times. reference: it is what others are compared with. alone: no call links it to another, so that nothing is known.';
COMMENT ON COLUMN clock_offsets.offset_ns IS 'How far it is ahead of its reference, ns, negative: behind; an estimate. 0 of a clock that is alone, for want of knowledge.';
COMMENT ON COLUMN clock_offsets.uncertainty_ns IS 'How far the estimate can be off either way if no call contradicts, ns: from the estimate to the farther of its bounds, added up on the way to the reference; null of a clock that is alone.';
COMMENT ON COLUMN clock_offsets.calls IS 'Calls, either way, between it and its parent: of the stretch that this one is a part of.';
COMMENT ON COLUMN clock_offsets.contradicting_calls IS 'Of these, those whose bounds do not hold the estimate''s; some may where stretches were put together from pieces.';
COMMENT ON COLUMN clock_offsets.excluded_calls IS 'Further calls between the two in the whole run, which say nothing: the server took longer than its client, or the client alone failed.';

-- One row is a clock in a stretch of time, and how far it was ahead of its reference: an estimate.
--
-- Offsets add up along the way to the reference, and so do their uncertainties. Where the offset of
-- a clock on the way changed, that divides the times of all clocks behind it.
CREATE VIEW clock_offsets AS
WITH RECURSIVE
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
    FROM _clock_tree AS tree
    JOIN _clock_stretches AS stretch
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
        0::BIGINT AS uncertainty_ns,
        'reference' AS method,
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
COMMENT ON COLUMN clock_offsets.clock IS 'Key of clocks.';
COMMENT ON COLUMN clock_offsets.reference_clock IS 'What it is compared with: of all clocks that calls link, the one on which most traces begin; itself where nothing links it to another.';
COMMENT ON COLUMN clock_offsets.parent_clock IS 'The clock that it was measured against, the first on the way to the reference: where most calls lead; null of a reference.';
COMMENT ON COLUMN clock_offsets.from_unix_nano IS 'Start of the stretch by this clock, ns since 1970; null: from the beginning.';
COMMENT ON COLUMN clock_offsets.until_unix_nano IS 'End of the stretch by this clock, ns since 1970; null: to the end.';
COMMENT ON COLUMN clock_offsets.method IS 'How it was measured against its parent: as in clock_pairs; reference: not at all.';
COMMENT ON COLUMN clock_offsets.offset_ns IS 'How far it is ahead of its reference, ns, negative: behind; an estimate.';
COMMENT ON COLUMN clock_offsets.uncertainty_ns IS 'How far the estimate can be off either way, ns, if no call contradicts: half the width of the bounds, added up on the way to the reference.';
COMMENT ON COLUMN clock_offsets.calls IS 'Calls, either way, between it and its parent: of the stretch that this one is a part of.';
COMMENT ON COLUMN clock_offsets.contradicting_calls IS 'Of these, those whose bounds do not hold the estimate''s.';
COMMENT ON COLUMN clock_offsets.excluded_calls IS 'Further calls between the two in the whole run, which say nothing (clock_bounds.excluded).';

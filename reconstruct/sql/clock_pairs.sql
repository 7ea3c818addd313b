-- One row is two clocks that calls go between, in a stretch of time: how far they were apart.
CREATE VIEW clock_pairs AS
SELECT
    first.clock,
    second.clock AS other_clock,
    stretch.method,
    stretch.offset_ns,
    stretch.lower_ns,
    stretch.upper_ns,
    stretch.upper_ns - stretch.lower_ns AS width_ns,
    stretch.calls,
    stretch.contradicting AS contradicting_calls,
    stretch.pair_excluded AS excluded_calls,
    stretch.first_start AS first_time_unix_nano,
    stretch.first_end AS last_time_unix_nano
FROM _clock_stretches AS stretch
JOIN _clock_names AS first ON first.number = stretch.first
JOIN _clock_names AS second ON second.number = stretch.second;

COMMENT ON VIEW clock_pairs IS 'One row is two clocks that calls go between, in a stretch of time: how far they were apart.';
COMMENT ON COLUMN clock_pairs.clock IS 'The clock that comes first in order of names: key of clocks.';
COMMENT ON COLUMN clock_pairs.other_clock IS 'The other one.';
COMMENT ON COLUMN clock_pairs.method IS 'none: no skew, 0 is within the bounds of all calls, or of nearly all. bounds: the middle of what the bounds of all calls have in common, or of most (contradicting_calls). buckets: the offset changed (a clock was set, or drifts), a row for each stretch of time. median: more than a quarter of the calls contradict each other at all times. null: no call says anything.';
COMMENT ON COLUMN clock_pairs.offset_ns IS 'How far other_clock is ahead of clock, ns, an estimate: 0 or the middle of the bounds; where more than a quarter of the calls contradict, the median of the middles of all bounds.';
COMMENT ON COLUMN clock_pairs.lower_ns IS 'The least that it can be, ns; where more than a quarter contradict, 5 % of the middles are below.';
COMMENT ON COLUMN clock_pairs.upper_ns IS 'The most that it can be, ns; where more than a quarter contradict, 5 % of the middles are above.';
COMMENT ON COLUMN clock_pairs.width_ns IS 'Upper less lower bound, ns.';
COMMENT ON COLUMN clock_pairs.calls IS 'Calls, either way, that the estimate is made from, those that contradict it too.';
COMMENT ON COLUMN clock_pairs.contradicting_calls IS 'Of these, those whose bounds do not hold the estimate''s; some may where stretches were put together from pieces.';
COMMENT ON COLUMN clock_pairs.excluded_calls IS 'Further calls of the two clocks in the whole run, which say nothing (clock_bounds.excluded).';
COMMENT ON COLUMN clock_pairs.first_time_unix_nano IS 'Start of the first of these calls by clock, ns since 1970.';
COMMENT ON COLUMN clock_pairs.last_time_unix_nano IS 'Start of the last of these calls by clock, ns since 1970.';

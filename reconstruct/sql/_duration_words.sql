-- Three digits of a positive number below 1000.
CREATE MACRO _three_digits(value) AS CASE
    WHEN value < 9.995 THEN format('{:.2f}', value)
    WHEN value < 99.95 THEN format('{:.1f}', value)
    ELSE format('{:.0f}', value)
END;

COMMENT ON MACRO _three_digits IS 'Three digits of a positive number below 1000.';

-- Seconds in a larger unit and, where there is a rest, a smaller one.
CREATE MACRO _two_units(seconds, large, large_unit, small, small_unit) AS
    format('{:,}', seconds // large) || ' ' || large_unit
    || CASE
        WHEN seconds % large // small > 0
            THEN ' ' || (seconds % large // small) || ' ' || small_unit
        ELSE ''
    END;

COMMENT ON MACRO _two_units IS 'Seconds in a larger unit and, where there is a rest, a smaller one.';

-- A length of time as it reads in a table: three digits and a fitting unit, as in `render.text`.
CREATE MACRO _duration_words(ns) AS CASE
    WHEN ns < 1000 THEN ns || ' ns'
    WHEN ns < 999500 THEN _three_digits(ns / 1e3) || ' µs'
    WHEN ns < 999500000 THEN _three_digits(ns / 1e6) || ' ms'
    WHEN ns < 59950000000 THEN _three_digits(ns / 1e9) || ' s'
    WHEN ns < 3599500000000 THEN _two_units(round_even(ns / 1e9, 0)::BIGINT, 60, 'min', 1, 's')
    WHEN ns < 86399500000000
        THEN _two_units(round_even(ns / 1e9, 0)::BIGINT, 3600, 'h', 60, 'min')
    ELSE _two_units(round_even(ns / 1e9, 0)::BIGINT, 86400, 'd', 3600, 'h')
END;

COMMENT ON MACRO _duration_words IS 'A length of time as it reads in a table: three digits and a fitting unit.';

-- ` (3 more turns)`; nothing when there are no more.
CREATE MACRO _more_of(more, singular, several) AS CASE
    WHEN more = 1 THEN ' (1 more ' || singular || ')'
    WHEN more > 1 THEN ' (' || more || ' more ' || several || ')'
    ELSE ''
END;

COMMENT ON MACRO _more_of IS 'How many more there are, in parentheses; nothing when there are no more.';

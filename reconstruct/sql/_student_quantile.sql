-- What Student's t of `df` degrees of freedom exceeds with a probability of which `z` is the normal
-- quantile and `tail` the probability.
--
-- Exact for 2 and 4 degrees, which stand for those up to the next, too: intervals are too wide then
-- rather than too narrow. From 5 on a series (Abramowitz and Stegun 26.7.5), within 5 % down to a
-- tail of 1 in 10,000. None below 2.
CREATE MACRO _student_quantile(tail, z, df) AS
    CASE
        WHEN df >= 5 THEN z
            + (pow(z, 3) + z) / (4 * df)
            + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * df * df)
            + (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * pow(df, 3))
        WHEN df >= 4 THEN 2 * sqrt(
            cos(acos(sqrt(4 * tail * (1 - tail))) / 3) / sqrt(4 * tail * (1 - tail)) - 1
        )
        WHEN df >= 2 THEN (1 - 2 * tail) * sqrt(2 / (4 * tail * (1 - tail)))
    END;

COMMENT ON MACRO _student_quantile IS 'What Student''s t of `df` degrees of freedom exceeds with a probability `tail`, of which `z` is the normal quantile.';

-- What a normal variable exceeds with probability `tail`, at most one half: within 0.0005, by a
-- rational approximation (Abramowitz and Stegun 26.2.23).
CREATE MACRO _normal_quantile(tail) AS
    sqrt(-2 * ln(tail))
    - (2.515517 + 0.802853 * sqrt(-2 * ln(tail)) - 0.010328 * 2 * ln(tail))
    / (
        1
        + 1.432788 * sqrt(-2 * ln(tail))
        - 0.189269 * 2 * ln(tail)
        + 0.001308 * pow(-2 * ln(tail), 1.5)
    );

COMMENT ON MACRO _normal_quantile IS 'What a normal variable exceeds with probability `tail`, at most one half.';

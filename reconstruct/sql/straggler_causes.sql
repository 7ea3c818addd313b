-- One row is something that some rollouts of a step met and others did not, and how many of both are
-- slow: longer than one and a half times the median of their step.
--
-- At least 3 rollouts must have met it, and 3 not. How likely so many of the slow ones would be
-- among them by chance is exact (hypergeometric), times the number of values that were compared in
-- the step, so that one in a hundred steps at most gets a cause by chance.
CREATE VIEW straggler_causes AS
WITH
rollout AS MATERIALIZED (
    SELECT
        key,
        rollout_id,
        is_slow,
        rollouts,
        count(*) FILTER (is_slow) OVER (PARTITION BY key) AS slow
    FROM _slow_rollouts
),
compared AS MATERIALIZED (
    SELECT
        met.key,
        met.aspect,
        met.value,
        any_value(rollout.rollouts) AS rollouts,
        any_value(rollout.slow) AS slow,
        count(*) AS rollouts_with,
        count(*) FILTER (rollout.is_slow) AS slow_with,
        count(*) OVER (PARTITION BY met.key) AS values_compared
    FROM _rollout_values AS met
    JOIN rollout USING (key, rollout_id)
    GROUP BY met.key, met.aspect, met.value
    HAVING count(*) >= 3 AND any_value(rollout.rollouts) - count(*) >= 3
),
-- The ways to choose a few of many are counted as logarithms.
chance AS (
    SELECT
        key,
        aspect,
        value,
        sum(
            exp(
                lgamma(slow + 1) - lgamma(hits + 1) - lgamma(slow - hits + 1)
                + lgamma(rollouts - slow + 1) - lgamma(rollouts_with - hits + 1)
                - lgamma(rollouts - slow - rollouts_with + hits + 1)
                - lgamma(rollouts + 1) + lgamma(rollouts_with + 1)
                + lgamma(rollouts - rollouts_with + 1)
            )
            ORDER BY hits
        ) AS p
    FROM (
        SELECT
            *,
            unnest(generate_series(slow_with, least(slow, rollouts_with))) AS hits
        FROM compared
        WHERE slow_with * (rollouts - rollouts_with) > (slow - slow_with) * rollouts_with
    )
    GROUP BY key, aspect, value
)
SELECT
    step.run_id,
    step.step,
    compared.aspect,
    compared.value,
    compared.rollouts_with,
    compared.slow_with,
    compared.rollouts - compared.rollouts_with AS rollouts_without,
    compared.slow - compared.slow_with AS slow_without,
    (compared.slow_with * (compared.rollouts - compared.rollouts_with))::DOUBLE
        / nullif((compared.slow - compared.slow_with) * compared.rollouts_with, 0) AS lift,
    least(coalesce(chance.p, 1) * compared.values_compared, 1) AS chance,
    coalesce(chance.p * compared.values_compared < 0.01, FALSE) AS is_cause
FROM compared
JOIN _steps AS step USING (key)
LEFT JOIN chance USING (key, aspect, value);

COMMENT ON VIEW straggler_causes IS 'One row is something that some rollouts of a step met and others did not, and how many of both are slow: longer than one and a half times the median of their step.';
COMMENT ON COLUMN straggler_causes.run_id IS 'nemo.run.id.';
COMMENT ON COLUMN straggler_causes.step IS 'Number of the step in its run, as in steps.';
COMMENT ON COLUMN straggler_causes.aspect IS 'What kind of thing it is: instance, host, route (name of a SERVER span, and service), environment (an agent or resources server), service, attempt (of the rollout).';
COMMENT ON COLUMN straggler_causes.value IS 'Which one.';
COMMENT ON COLUMN straggler_causes.rollouts_with IS 'Rollouts that met it; at least 3.';
COMMENT ON COLUMN straggler_causes.slow_with IS 'Slow ones among them.';
COMMENT ON COLUMN straggler_causes.rollouts_without IS 'Rollouts that did not; at least 3.';
COMMENT ON COLUMN straggler_causes.slow_without IS 'Slow ones among those.';
COMMENT ON COLUMN straggler_causes.lift IS 'Share of slow ones with it by the share without it; null when none without it is slow.';
COMMENT ON COLUMN straggler_causes.chance IS 'How likely so many slow ones would be among those with it if it made no difference, times the values compared in the step; at most 1.';
COMMENT ON COLUMN straggler_causes.is_cause IS 'Whether chance is below 0.01. Others may then have met the same rollouts: of all causes the one with the least chance explains best.';

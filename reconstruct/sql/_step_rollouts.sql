-- One row is a rollout in a step, and how it ended.
--
-- It has ended when its outermost span has (the earliest of them, where it has several), and failed
-- when that or its gym.rollout span ended with ERROR. `nth` counts the rollouts of the step in the
-- order of their ends, from 1.
CREATE VIEW _step_rollouts AS
WITH
-- Only in a trace of several rollouts, or of spans of none, may one begin below another span.
outermost_span AS (
    SELECT node
    FROM _edges
    WHERE parent IS NULL
    UNION
    SELECT edge.node
    FROM _edges AS edge
    SEMI JOIN (
        SELECT trace_id
        FROM traces
        WHERE rollout_id IS NULL AND rollout_count > 0
    ) AS mixed USING (trace_id)
    JOIN _rollout_spans AS member USING (node)
    LEFT JOIN _rollout_spans AS above ON above.node = edge.parent
    WHERE above.node IS NULL OR above.rollout_id <> member.rollout_id
),
outermost AS (
    SELECT
        member.run_id,
        member.rollout_id,
        member.trace_id,
        min((
            member.start_time_unix_nano,
            member.span_id,
            member.state,
            coalesce(member.status_code = 'ERROR', FALSE)
        )) AS first
    FROM _rollout_spans AS member
    SEMI JOIN outermost_span USING (node)
    GROUP BY member.run_id, member.rollout_id, member.trace_id
),
failure AS (
    SELECT DISTINCT
        member.run_id,
        member.rollout_id,
        member.trace_id
    FROM _rollout_spans AS member
    JOIN spans AS span ON span.rowid = member.node
    WHERE span.name = 'gym.rollout' AND span.status_code = 'ERROR'
),
rollout AS (
    SELECT
        step.key,
        part.rollout_id,
        min(part.start_time_unix_nano) AS start_time,
        max(part.end_time_unix_nano) AS end_time,
        arg_min(outermost.first[3], (outermost.first[1], part.trace_id)) AS state,
        bool_or(failure.trace_id IS NOT NULL)
            OR arg_min(outermost.first[4], (outermost.first[1], part.trace_id)) AS has_failed
    FROM _step_parts AS part
    JOIN _steps AS step
        ON step.job IS NOT DISTINCT FROM part.job
        AND (step.job IS NOT NULL OR step.run_id IS NOT DISTINCT FROM part.run_id)
    LEFT JOIN outermost
        ON outermost.trace_id = part.trace_id
        AND outermost.rollout_id = part.rollout_id
        AND outermost.run_id IS NOT DISTINCT FROM part.run_id
    LEFT JOIN failure
        ON failure.trace_id = part.trace_id
        AND failure.rollout_id = part.rollout_id
        AND failure.run_id IS NOT DISTINCT FROM part.run_id
    GROUP BY step.key, part.rollout_id
)
SELECT
    key,
    rollout_id,
    start_time AS start_time_unix_nano,
    end_time AS end_time_unix_nano,
    end_time - start_time AS duration_ns,
    state = 'finished' AS has_ended,
    state = 'finished' AND has_failed AS has_failed,
    row_number() OVER (PARTITION BY key ORDER BY end_time, rollout_id) AS nth
FROM rollout;

COMMENT ON VIEW _step_rollouts IS 'One row is a rollout in a step (key in _steps), and how it ended; nth counts them in the order of their ends.';

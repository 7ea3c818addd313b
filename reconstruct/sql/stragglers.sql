-- One row is a rollout that held its step up: it is slow (longer than one and a half times the median
-- of its step) or among the last to end (steps.tail_count); with what explains that.
--
-- Of what it met (straggler_causes), the cause with the least chance explains it. Of the spans on
-- its critical path, it is the one that is to blame for most time beyond what spans of its service
-- and name are at the median.
CREATE VIEW stragglers AS
WITH
straggler AS MATERIALIZED (
    SELECT
        rollout.*,
        step.run_id,
        step.step,
        step.start_time_unix_nano AS step_start
    FROM _slow_rollouts AS rollout
    JOIN _steps AS step USING (key)
    WHERE rollout.rollouts > 1
        AND (
            rollout.is_slow
            OR rollout.nth > rollout.rollouts - greatest(rollout.rollouts // 100, 1)
        )
),
cause AS (
    SELECT
        straggler.key,
        straggler.rollout_id,
        min((
            cause.chance,
            list_position(
                ['instance', 'host', 'route', 'environment', 'service', 'attempt'],
                cause.aspect
            ),
            cause.value,
            cause.aspect
        )) AS best
    FROM straggler
    JOIN _rollout_values AS met USING (key, rollout_id)
    JOIN straggler_causes AS cause
        ON cause.run_id IS NOT DISTINCT FROM straggler.run_id
        AND cause.step = straggler.step
        AND cause.aspect = met.aspect
        AND cause.value = met.value
    WHERE straggler.is_slow AND cause.is_cause
    GROUP BY straggler.key, straggler.rollout_id
),
blamed AS (
    SELECT
        section.run_id,
        section.rollout_id,
        section.node,
        span.name,
        span.service_name,
        min(section.start_time) AS first_time,
        max(section.end_time) AS last_time,
        sum(section.end_time - section.start_time)::BIGINT AS blame_ns
    FROM _rollout_sections AS section
    JOIN spans AS span ON span.rowid = section.node
    GROUP BY ALL
),
usual AS (
    SELECT
        name,
        service_name,
        quantile_disc(blame_ns, 0.5) AS blame_ns
    FROM blamed
    GROUP BY name, service_name
),
worst AS (
    SELECT
        straggler.key,
        straggler.rollout_id,
        arg_max(
            (blamed.node, blamed.blame_ns, usual.blame_ns),
            (blamed.blame_ns - usual.blame_ns, blamed.blame_ns, -blamed.first_time)
        ) AS span
    FROM straggler
    JOIN blamed
        ON blamed.rollout_id = straggler.rollout_id
        AND blamed.run_id IS NOT DISTINCT FROM straggler.run_id
        AND blamed.first_time >= straggler.start_time_unix_nano
        AND blamed.last_time <= straggler.end_time_unix_nano
    JOIN usual
        ON usual.name = blamed.name
        AND usual.service_name IS NOT DISTINCT FROM blamed.service_name
    WHERE blamed.blame_ns > usual.blame_ns
    GROUP BY straggler.key, straggler.rollout_id
)
SELECT
    straggler.run_id,
    straggler.step,
    row_number() OVER (
        PARTITION BY straggler.key
        ORDER BY
            straggler.is_slow DESC,
            CASE WHEN straggler.is_slow THEN straggler.duration_ns END DESC,
            straggler.nth DESC
    ) AS rank,
    straggler.rollout_id,
    straggler.start_time_unix_nano,
    straggler.end_time_unix_nano,
    straggler.duration_ns,
    straggler.median_ns,
    straggler.duration_ns - straggler.median_ns AS excess_ns,
    straggler.is_slow,
    straggler.has_ended,
    straggler.has_failed,
    straggler.start_time_unix_nano - straggler.step_start AS began_after_ns,
    straggler.rollouts - straggler.nth + 1 AS nth_from_last,
    straggler.held_up_ns,
    cause.best[4] AS cause_aspect,
    cause.best[3] AS cause_value,
    cause.best[1] AS cause_chance,
    span.trace_id,
    span.span_id,
    span.occurrence,
    span.name,
    span.service_name,
    span.instance,
    worst.span[2] AS blame_ns,
    worst.span[3] AS usual_blame_ns
FROM straggler
LEFT JOIN cause USING (key, rollout_id)
LEFT JOIN worst USING (key, rollout_id)
LEFT JOIN spans AS span ON span.rowid = worst.span[1];

COMMENT ON VIEW stragglers IS 'One row is a rollout that held its step up: it is slow (longer than one and a half times the median of its step) or among the last to end (steps.tail_count); with what explains that.';
COMMENT ON COLUMN stragglers.run_id IS 'nemo.run.id.';
COMMENT ON COLUMN stragglers.step IS 'Number of the step in its run, as in steps.';
COMMENT ON COLUMN stragglers.rank IS 'Place among the stragglers of its step, from 1: slow ones, the longest first, then the last to end.';
COMMENT ON COLUMN stragglers.rollout_id IS 'nemo.gym.rollout.id.';
COMMENT ON COLUMN stragglers.start_time_unix_nano IS 'Earliest start, ns since 1970.';
COMMENT ON COLUMN stragglers.end_time_unix_nano IS 'Latest end, ns since 1970; an unfinished span counts as far as it was seen.';
COMMENT ON COLUMN stragglers.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN stragglers.median_ns IS 'Median duration of the rollouts of its step, ns.';
COMMENT ON COLUMN stragglers.excess_ns IS 'Duration less that median, ns.';
COMMENT ON COLUMN stragglers.is_slow IS 'Whether it took longer than one and a half times that median; if not, it was among the last to end.';
COMMENT ON COLUMN stragglers.has_ended IS 'Whether its outermost span has ended.';
COMMENT ON COLUMN stragglers.has_failed IS 'Whether that or its gym.rollout span ended with ERROR.';
COMMENT ON COLUMN stragglers.began_after_ns IS 'From the start of its step to its own, ns.';
COMMENT ON COLUMN stragglers.nth_from_last IS 'Place among the rollouts of its step in the order of their ends, backwards: 1 ended last.';
COMMENT ON COLUMN stragglers.held_up_ns IS 'How much earlier the last rollout of its step would have ended without this one and those that ended after it, ns, if the others had gone as they did; null for the first to end.';
COMMENT ON COLUMN stragglers.cause_aspect IS 'straggler_causes.aspect of what explains best why it is slow; null when nothing does.';
COMMENT ON COLUMN stragglers.cause_value IS 'Which one.';
COMMENT ON COLUMN stragglers.cause_chance IS 'straggler_causes.chance of that.';
COMMENT ON COLUMN stragglers.trace_id IS 'Trace of the span on its critical path that took most beyond the usual; null without any.';
COMMENT ON COLUMN stragglers.span_id IS 'That span.';
COMMENT ON COLUMN stragglers.occurrence IS 'As in spans.';
COMMENT ON COLUMN stragglers.name IS 'What that span does.';
COMMENT ON COLUMN stragglers.service_name IS 'service.name of its process.';
COMMENT ON COLUMN stragglers.instance IS 'Its process: key of instances.';
COMMENT ON COLUMN stragglers.blame_ns IS 'Its time on the critical path of the rollout, ns.';
COMMENT ON COLUMN stragglers.usual_blame_ns IS 'Median of that time over the spans of its service and name on critical paths of rollouts, ns.';

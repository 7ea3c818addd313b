-- One row is a model call that the gym captured, with the rollout and the span that it was.
--
-- A capture names no trace. Its rollout stands in its file's name. Its span is that rollout's span
-- with the id of the model's answer, else the one that overlaps it most: a span of a model call
-- first, then one of the serving model server. Call and span must be each other's best, so that no
-- span stands for two calls. All other ids stay null.
CREATE VIEW model_calls AS
WITH
capture AS (
    SELECT
        * EXCLUDE (rollout_id, byte_offset, recovered),
        coalesce(
            rollout_id,
            nullif(regexp_extract(file, '([^/\\]+)\.capture\.jsonl[^/\\]*$', 1), '')
        ) AS rollout_id,
        coalesce(end_time_unix_nano, start_time_unix_nano + coalesce(duration_ns, 0)) AS last_time
    FROM _capture_lines
    QUALIFY row_number() OVER (PARTITION BY model_call_id, record::VARCHAR ORDER BY file, line) = 1
),
model_span AS (
    SELECT
        member.rollout_id,
        span.rowid AS node,
        span.trace_id,
        span.span_id,
        span.run_id,
        span.server_name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.attributes ->> 'gen_ai.response.id' AS response_id,
        span.name LIKE 'gym.model.%' OR (span.attributes ->> 'gen_ai.operation.name') IS NOT NULL
            AS is_call,
        span.kind = 'SERVER' AS is_server
    FROM _rollout_spans AS member
    JOIN spans AS span ON span.rowid = member.node
    WHERE span.end_time_unix_nano IS NOT NULL
        AND member.rollout_id IN (SELECT rollout_id FROM capture)
),
candidate AS (
    SELECT
        capture.file,
        capture.line,
        span.node,
        span.trace_id,
        span.span_id,
        span.run_id,
        coalesce(span.response_id = capture.response_id, FALSE) AS has_id,
        span.is_call,
        (
            least(capture.last_time, span.end_time_unix_nano)
            - greatest(capture.start_time_unix_nano, span.start_time_unix_nano)
        ) / greatest(
            greatest(capture.last_time, span.end_time_unix_nano)
            - least(capture.start_time_unix_nano, span.start_time_unix_nano),
            1
        ) AS overlap
    FROM capture
    JOIN model_span AS span
        ON span.rollout_id = capture.rollout_id
        AND span.start_time_unix_nano <= capture.last_time
        AND span.end_time_unix_nano >= capture.start_time_unix_nano
        AND (span.is_call OR (span.is_server AND span.server_name = capture.server_name))
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY file, line
            ORDER BY has_id DESC, is_call DESC, overlap DESC, trace_id, span_id, node
        ) AS nth_of_capture,
        row_number() OVER (
            PARTITION BY node
            ORDER BY has_id DESC, overlap DESC, file, line
        ) AS nth_of_span
    FROM candidate
),
run AS (
    SELECT
        capture.file,
        capture.line,
        any_value(rollout.run_id) AS run_id
    FROM capture
    JOIN rollouts AS rollout
        ON rollout.rollout_id = capture.rollout_id
        AND rollout.start_time_unix_nano <= capture.last_time
        AND rollout.end_time_unix_nano >= capture.start_time_unix_nano
    GROUP BY ALL
    HAVING count(*) = 1
)
SELECT
    coalesce(match.run_id, run.run_id) AS run_id,
    capture.rollout_id,
    row_number() OVER (
        PARTITION BY coalesce(match.run_id, run.run_id), capture.rollout_id
        ORDER BY capture.start_time_unix_nano, capture.file, capture.line
    ) AS call_number,
    capture.model_call_id,
    capture.dialect,
    capture.server_name,
    capture.server_type,
    capture.model,
    capture.start_time_unix_nano,
    capture.end_time_unix_nano,
    coalesce(capture.duration_ns, capture.end_time_unix_nano - capture.start_time_unix_nano)
        AS duration_ns,
    capture.time_to_first_token_ns,
    capture.status_code,
    capture.error_category,
    capture.input_tokens,
    capture.cached_input_tokens,
    capture.output_tokens,
    capture.reasoning_tokens,
    match.trace_id,
    match.span_id,
    CASE WHEN match.has_id THEN 'id' WHEN match.span_id IS NOT NULL THEN 'time' END AS span_match,
    capture.record,
    capture.file,
    capture.line
FROM capture
LEFT JOIN ranked AS match
    ON match.file = capture.file
    AND match.line = capture.line
    AND match.nth_of_capture = 1
    AND match.nth_of_span = 1
LEFT JOIN run ON run.file = capture.file AND run.line = capture.line;

COMMENT ON VIEW model_calls IS 'One row is a model call that the gym captured, with the rollout and the span that it was.';
COMMENT ON COLUMN model_calls.run_id IS 'nemo.run.id of its span, else of the only run whose rollout of that id was under way.';
COMMENT ON COLUMN model_calls.rollout_id IS 'Rollout that its file is named after.';
COMMENT ON COLUMN model_calls.call_number IS 'Its place among the calls of its rollout, by start, from 1.';
COMMENT ON COLUMN model_calls.model_call_id IS 'The capture''s own id.';
COMMENT ON COLUMN model_calls.dialect IS 'API of the call: responses, chat_completions or messages.';
COMMENT ON COLUMN model_calls.server_name IS 'Model server that was called.';
COMMENT ON COLUMN model_calls.server_type IS 'Its type.';
COMMENT ON COLUMN model_calls.model IS 'Model that answered, else the one asked for.';
COMMENT ON COLUMN model_calls.start_time_unix_nano IS 'Start, ns since 1970; captured in float seconds, so exact to about 240 ns.';
COMMENT ON COLUMN model_calls.end_time_unix_nano IS 'End, ns since 1970; null without one.';
COMMENT ON COLUMN model_calls.duration_ns IS 'Latency as captured, ns; else end less start.';
COMMENT ON COLUMN model_calls.time_to_first_token_ns IS 'Time to the first token as captured, ns.';
COMMENT ON COLUMN model_calls.status_code IS 'HTTP status of the answer.';
COMMENT ON COLUMN model_calls.error_category IS 'Kind of failure as captured; null when there was none.';
COMMENT ON COLUMN model_calls.input_tokens IS 'Tokens of the prompt.';
COMMENT ON COLUMN model_calls.cached_input_tokens IS 'Those of them that came from a cache.';
COMMENT ON COLUMN model_calls.output_tokens IS 'Tokens of the answer.';
COMMENT ON COLUMN model_calls.reasoning_tokens IS 'Those of them that were reasoning.';
COMMENT ON COLUMN model_calls.trace_id IS 'Trace of its span; null when none fits.';
COMMENT ON COLUMN model_calls.span_id IS 'Span that the call was; null when none fits.';
COMMENT ON COLUMN model_calls.span_match IS 'How its span was found: id (gen_ai.response.id) or time (the greatest overlap).';
COMMENT ON COLUMN model_calls.record IS 'The capture as it lies in the file, a JSON object with request and response.';
COMMENT ON COLUMN model_calls.file IS 'File the capture lies in.';
COMMENT ON COLUMN model_calls.line IS 'Physical line in that file, from 1.';

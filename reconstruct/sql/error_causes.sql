-- One row is a span that failed of itself, and what failed for it: the cause of an error.
CREATE VIEW error_causes AS
SELECT
    span.trace_id,
    span.span_id,
    span.occurrence,
    coalesce(member.run_id, span.run_id) AS run_id,
    member.rollout_id,
    found.cause,
    span.service_name,
    span.name,
    found.error_type,
    found.message,
    failed.span_id AS failed_span_id,
    failed.service_name AS failed_service_name,
    failed.name AS failed_name,
    found.has_reached_root,
    waited.span_id AS waited_span_id,
    waited.service_name AS waited_service_name,
    waited.name AS waited_name,
    CASE
        WHEN found.waited_outcome = 'unfinished' AND waited.state <> 'finished' THEN waited.state
        ELSE found.waited_outcome
    END AS waited_outcome,
    span.start_time_unix_nano,
    span.end_time_unix_nano,
    span.duration_ns,
    span.file,
    span.line
FROM _error_causes AS found
JOIN spans AS span ON span.rowid = found.node
JOIN spans AS failed ON failed.rowid = found.failed_node
LEFT JOIN spans AS waited ON waited.rowid = found.waited_node
LEFT JOIN _rollout_spans AS member ON member.node = found.node;

COMMENT ON VIEW error_causes IS 'One row is a span that failed of itself, and what failed for it: the cause of an error. It is the deepest failed span without a failed child; that spans above it failed for it is taken for granted.';
COMMENT ON COLUMN error_causes.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN error_causes.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN error_causes.occurrence IS 'As in spans.';
COMMENT ON COLUMN error_causes.run_id IS 'nemo.run.id of its rollout, else of its process.';
COMMENT ON COLUMN error_causes.rollout_id IS 'The rollout that it belongs to; null without one.';
COMMENT ON COLUMN error_causes.cause IS 'failed: of itself. timeout: the same, and its error.type, its message or HTTP status 408 or 504 say that it took too long. cancelled: it was cancelled, and nothing above it had failed.';
COMMENT ON COLUMN error_causes.service_name IS 'service.name of its process.';
COMMENT ON COLUMN error_causes.name IS 'What the span does.';
COMMENT ON COLUMN error_causes.error_type IS 'error.type, else the type of its last exception, else its HTTP status; null without any.';
COMMENT ON COLUMN error_causes.message IS 'Message of its last exception, else of its status; null without any.';
COMMENT ON COLUMN error_causes.failed_span_id IS 'The highest span that failed for it, each below it too; its own where the one above did not fail.';
COMMENT ON COLUMN error_causes.failed_service_name IS 'service.name of that span.';
COMMENT ON COLUMN error_causes.failed_name IS 'Name of that span.';
COMMENT ON COLUMN error_causes.has_reached_root IS 'That span has no parent in the input: the whole of its tree failed. False: whoever called it did not fail.';
COMMENT ON COLUMN error_causes.waited_span_id IS 'What it waited for when it failed: the deepest unfinished span below it, else the deepest cancelled one, else, of a timeout, a child that went on longer; null when there is none.';
COMMENT ON COLUMN error_causes.waited_service_name IS 'service.name of that span.';
COMMENT ON COLUMN error_causes.waited_name IS 'Name of that span.';
COMMENT ON COLUMN error_causes.waited_outcome IS 'What became of that span: open or lost (spans.state), unfinished (a shutdown ended it), cancelled, late (it ended after the timeout).';
COMMENT ON COLUMN error_causes.start_time_unix_nano IS 'Start, ns since 1970.';
COMMENT ON COLUMN error_causes.end_time_unix_nano IS 'End, ns since 1970.';
COMMENT ON COLUMN error_causes.duration_ns IS 'End less start, ns.';
COMMENT ON COLUMN error_causes.file IS 'File the record lies in.';
COMMENT ON COLUMN error_causes.line IS 'Physical line in that file, from 1.';

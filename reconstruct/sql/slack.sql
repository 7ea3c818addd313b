-- One row is a span and what its length means to the end of its root.
CREATE VIEW slack AS
SELECT
    trace_id,
    span_id,
    occurrence,
    critical,
    drag_ns,
    slack_ns
FROM slack_of(NULL);

COMMENT ON VIEW slack IS 'One row is a span and what its length means to the end of its root; slack_of(ids) gives that of a list of trace ids faster.';
COMMENT ON COLUMN slack.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN slack.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN slack.occurrence IS 'As in spans.';
COMMENT ON COLUMN slack.critical IS 'Its root waited for it: it, or what is below it, is on the critical path.';
COMMENT ON COLUMN slack.drag_ns IS 'How much shorter it could have been before another span would have been waited for in its place, ns; 0 off the path.';
COMMENT ON COLUMN slack.slack_ns IS 'How much longer it could have been before it would have been waited for, ns; null where nobody would have.';

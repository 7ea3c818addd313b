-- One row is a span that has no end of its own: open, lost with its process, or ended by a shutdown
-- or by being cancelled.
CREATE VIEW stuck_work AS
SELECT
    trace_id,
    span_id,
    occurrence,
    name,
    kind,
    route,
    service_name,
    run_id,
    rollout_id,
    ending,
    start_time_unix_nano,
    open_ns,
    waited_ns,
    kind_p99_ns,
    longest_peer_ns,
    finished_peers,
    is_stuck,
    is_innermost,
    waits_for,
    instance,
    process_state,
    process_pid,
    host_name,
    last_sign_of_life_unix_nano,
    last_file,
    last_line,
    file,
    line
FROM stuck_work_at(NULL);

COMMENT ON VIEW stuck_work IS 'One row is a span that has no end of its own: open, lost with its process, or ended by a shutdown or by being cancelled; stuck_work_at(instant) gives what had not ended at an instant.';
COMMENT ON COLUMN stuck_work.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN stuck_work.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN stuck_work.occurrence IS 'As in spans.';
COMMENT ON COLUMN stuck_work.name IS 'What the span does.';
COMMENT ON COLUMN stuck_work.kind IS 'INTERNAL, SERVER, CLIENT, PRODUCER or CONSUMER.';
COMMENT ON COLUMN stuck_work.route IS 'http.route; of a client span the path that it called, less the rollout before it; null when unknown.';
COMMENT ON COLUMN stuck_work.service_name IS 'service.name of its process.';
COMMENT ON COLUMN stuck_work.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN stuck_work.rollout_id IS 'The rollout that it belongs to (see rollouts); null when to none.';
COMMENT ON COLUMN stuck_work.ending IS 'How it is without an end of its own: open; lost: its process stopped or died; shutdown: ended because its process stopped; cancelled.';
COMMENT ON COLUMN stuck_work.start_time_unix_nano IS 'Start, ns since 1970.';
COMMENT ON COLUMN stuck_work.open_ns IS 'For how long it is known to have been open, ns: until the last time in its run (open), the last sign of life of its process (lost), or its end.';
COMMENT ON COLUMN stuck_work.waited_ns IS 'From its start to the last time at which it, or what began before it in its trace and has no end of its own either, is known to have been open, ns.';
COMMENT ON COLUMN stuck_work.kind_p99_ns IS '99 % of the finished spans of its service, name and route (where its own is unknown: of any) took at most so long, ns; null when there are fewer than 10.';
COMMENT ON COLUMN stuck_work.longest_peer_ns IS 'The longest of them, ns; null without any.';
COMMENT ON COLUMN stuck_work.finished_peers IS 'How many there are.';
COMMENT ON COLUMN stuck_work.is_stuck IS 'Whether it was open for longer than kind_p99_ns; null when that is unknown.';
COMMENT ON COLUMN stuck_work.is_innermost IS 'Whether nothing below it is without an end too: this is where its trace hangs.';
COMMENT ON COLUMN stuck_work.waits_for IS 'In words: what below it has no end, else who it called, else its own work.';
COMMENT ON COLUMN stuck_work.instance IS 'Its process: key of instances.';
COMMENT ON COLUMN stuck_work.process_state IS 'instances.state of its process.';
COMMENT ON COLUMN stuck_work.process_pid IS 'process.pid of its process.';
COMMENT ON COLUMN stuck_work.host_name IS 'host.name of its process.';
COMMENT ON COLUMN stuck_work.last_sign_of_life_unix_nano IS 'Latest time on any line of its process, ns since 1970.';
COMMENT ON COLUMN stuck_work.last_file IS 'File with the last line of its process; null unless that stopped or died.';
COMMENT ON COLUMN stuck_work.last_line IS 'Physical line in that file, from 1.';
COMMENT ON COLUMN stuck_work.file IS 'File the record lies in.';
COMMENT ON COLUMN stuck_work.line IS 'Physical line in that file, from 1.';

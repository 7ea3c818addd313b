-- One row is a span, finished or not.
--
-- A span_start line counts only while no span line has the same ids. Equal copies are one row;
-- different contents under one id are rows of their own, numbered by `occurrence`.
CREATE VIEW spans AS
SELECT
    span.trace_id,
    span.span_id,
    CASE WHEN odd.has_other_parent THEN odd.parent_span_id ELSE span.parent_span_id END
        AS parent_span_id,
    span.name,
    span.kind,
    CASE
        WHEN span.record_type = 'span' THEN 'finished'
        WHEN owner.state IN ('stopped', 'dead') THEN 'lost'
        ELSE 'open'
    END AS state,
    owner.service_name,
    owner.service_instance_id,
    owner.server_name,
    owner.server_type,
    owner.run_id,
    span.rollout_id,
    owner.host_name,
    owner.process_pid,
    span.start_time_unix_nano,
    span.end_time_unix_nano,
    span.end_time_unix_nano - span.start_time_unix_nano AS duration_ns,
    CASE
        WHEN span.record_type = 'span' THEN NULL
        WHEN owner.state IN ('stopped', 'dead')
            THEN greatest(owner.last_time_unix_nano - span.start_time_unix_nano, 0)
        ELSE greatest(owner.run_last_time_unix_nano - span.start_time_unix_nano, 0)
    END AS open_ns,
    span.status_code,
    span.status_message,
    span.flags,
    span.trace_state,
    span.scope_name,
    span.scope_version,
    span.attributes,
    coalesce(span.events, '[]'::JSON) AS events,
    coalesce(span.links, '[]'::JSON) AS links,
    owner.resource,
    coalesce(span.dropped_attributes_count, 0) AS dropped_attributes_count,
    coalesce(span.dropped_events_count, 0) AS dropped_events_count,
    coalesce(span.dropped_links_count, 0) AS dropped_links_count,
    owner.instance,
    coalesce(odd.copies, 0) AS duplicates,
    coalesce(odd.occurrence, 1) AS occurrence,
    span.file,
    span.line,
    span.rowid AS rowid
FROM _span_lines AS span
JOIN _owner_instances AS owner USING (owner)
LEFT JOIN _odd_spans AS odd ON odd.row_id = span.rowid
WHERE odd.is_left_out IS NOT TRUE;

COMMENT ON VIEW spans IS 'One row is a span, finished or not.';
COMMENT ON COLUMN spans.trace_id IS '32 lower-case hex digits.';
COMMENT ON COLUMN spans.span_id IS '16 lower-case hex digits.';
COMMENT ON COLUMN spans.parent_span_id IS '16 lower-case hex digits; null is a root.';
COMMENT ON COLUMN spans.name IS 'What the span does; few distinct values.';
COMMENT ON COLUMN spans.kind IS 'INTERNAL, SERVER, CLIENT, PRODUCER or CONSUMER.';
COMMENT ON COLUMN spans.state IS 'finished; open: begun, not ended, and its process may live; lost: begun, not ended, and its process stopped or died (instances.state).';
COMMENT ON COLUMN spans.service_name IS 'service.name of its process.';
COMMENT ON COLUMN spans.service_instance_id IS 'service.instance.id of its process.';
COMMENT ON COLUMN spans.server_name IS 'nemo.gym.server.name of its process.';
COMMENT ON COLUMN spans.server_type IS 'nemo.gym.server.type of its process.';
COMMENT ON COLUMN spans.run_id IS 'nemo.run.id of its process.';
COMMENT ON COLUMN spans.rollout_id IS 'nemo.gym.rollout.id in its own attributes; null without one.';
COMMENT ON COLUMN spans.host_name IS 'host.name of its process.';
COMMENT ON COLUMN spans.process_pid IS 'process.pid of its process.';
COMMENT ON COLUMN spans.start_time_unix_nano IS 'Start, ns since 1970.';
COMMENT ON COLUMN spans.end_time_unix_nano IS 'End, ns since 1970; null while unfinished.';
COMMENT ON COLUMN spans.duration_ns IS 'End less start, ns; null while unfinished, so that averages leave those out.';
COMMENT ON COLUMN spans.open_ns IS 'Of an unfinished span: ns from its start to the last time in its run (open) or to the last sign of life of its process (lost).';
COMMENT ON COLUMN spans.status_code IS 'UNSET, OK or ERROR; null while unfinished.';
COMMENT ON COLUMN spans.status_message IS 'Why the status is ERROR.';
COMMENT ON COLUMN spans.flags IS 'W3C flags in bits 0-7, 8: remote known, 9: parent is remote; null when the format has none.';
COMMENT ON COLUMN spans.trace_state IS 'W3C tracestate header.';
COMMENT ON COLUMN spans.scope_name IS 'Instrumenting library.';
COMMENT ON COLUMN spans.scope_version IS 'Version of the instrumenting library.';
COMMENT ON COLUMN spans.attributes IS 'Facts of the span, a JSON object.';
COMMENT ON COLUMN spans.events IS 'JSON list of time_unix_nano (ns since 1970), name, attributes.';
COMMENT ON COLUMN spans.links IS 'JSON list of trace_id, span_id, attributes.';
COMMENT ON COLUMN spans.resource IS 'JSON object with attributes: the whole resource where a process record gave it.';
COMMENT ON COLUMN spans.dropped_attributes_count IS 'Attributes that a limit cut away.';
COMMENT ON COLUMN spans.dropped_events_count IS 'Events that a limit cut away.';
COMMENT ON COLUMN spans.dropped_links_count IS 'Links that a limit cut away.';
COMMENT ON COLUMN spans.instance IS 'Its process: key of instances.';
COMMENT ON COLUMN spans.duplicates IS 'Further equal copies of this record in the input.';
COMMENT ON COLUMN spans.occurrence IS '1; 2 and more for further contents under the same ids.';
COMMENT ON COLUMN spans.file IS 'File the record lies in.';
COMMENT ON COLUMN spans.line IS 'Physical line in that file, from 1.';
COMMENT ON COLUMN spans.rowid IS 'Number of its line among all span lines: what _edges.node refers to.';

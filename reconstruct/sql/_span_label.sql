-- How a finding names a span: its name and its service.
CREATE MACRO _span_label(name, service_name) AS name || coalesce(' in ' || service_name, '');

COMMENT ON MACRO _span_label IS 'How a finding names a span: its name and its service.';

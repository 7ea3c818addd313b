-- How a finding names a process: service, instance and pid, as far as they are known.
CREATE MACRO _instance_label(service_name, service_instance_id, process_pid) AS
    coalesce(service_name, 'a process without service.name')
    || coalesce(' (instance ' || service_instance_id || ')', '')
    || coalesce(', pid ' || process_pid, '');

COMMENT ON MACRO _instance_label IS 'How a finding names a process: service, instance and pid, as far as they are known.';

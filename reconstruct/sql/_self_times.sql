-- One row is a finished span (node: its rowid in spans) and its self time.
CREATE VIEW _self_times AS
FROM _self_times_of(NULL);

COMMENT ON VIEW _self_times IS 'One row is a finished span (node: its rowid in spans) and its self time.';

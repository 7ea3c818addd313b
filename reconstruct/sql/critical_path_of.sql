-- One row is a section of a critical path: a stretch of time in which the work of one span decided
-- when its root ended. Of the traces in the list `ids`, or of all when it is null.
CREATE MACRO critical_path_of(ids) AS TABLE
FROM _critical_path_of(ids, '_edges');

COMMENT ON MACRO TABLE critical_path_of IS 'One row is a section of a critical path: a stretch of time in which the work of one span decided when its root ended; of the traces in the list `ids`, or of all when it is null.';

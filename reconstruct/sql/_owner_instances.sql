-- One row is an owner of lines, and all that is known of the instance that it is.
CREATE TABLE _owner_instances AS
SELECT
    owner.owner,
    coalesce(instance.resource, owner.resource) AS resource,
    instance.* EXCLUDE (resource)
FROM _owners AS owner
JOIN instances AS instance USING (instance);

COMMENT ON TABLE _owner_instances IS 'One row is an owner of lines, and all that is known of the instance that it is.';

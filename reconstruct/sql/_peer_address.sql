-- The address that a client span called, host:port, or the name of its peer; null when unknown.
CREATE MACRO _peer_address(attributes) AS coalesce(
    attributes->>'peer.service',
    (attributes->>'server.address') || CASE
        WHEN (attributes->>'db.system') IS NOT NULL THEN ''
        WHEN (attributes->>'db.system.name') IS NOT NULL THEN ''
        ELSE coalesce(':' || (attributes->>'server.port'), '')
    END,
    (attributes->>'network.peer.address') || coalesce(':' || (attributes->>'network.peer.port'), ''),
    nullif(regexp_extract(attributes->>'url.full', '^[a-zA-Z]+://(?:[^/@]*@)?([^/?#]+)', 1), ''),
    attributes->>'db.namespace',
    attributes->>'db.name'
);

COMMENT ON MACRO _peer_address IS 'The address that a client span called, host:port, or the name of its peer.';

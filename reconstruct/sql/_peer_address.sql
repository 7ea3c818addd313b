-- What a span says of the other side of its call, in one reading of its attributes.
CREATE MACRO _peer_texts(attributes) AS attributes->>[
    'peer.service',
    'server.address',
    'server.port',
    'db.system',
    'db.system.name',
    'network.peer.address',
    'network.peer.port',
    'url.full',
    'db.namespace',
    'db.name'
];

COMMENT ON MACRO _peer_texts IS 'What a span says of the other side of its call, a list of texts.';

-- The address that a client span called, host:port, or the name of its peer; null when unknown.
CREATE MACRO _peer_address(attributes) AS coalesce(
    _peer_texts(attributes)[1],
    _peer_texts(attributes)[2] || CASE
        WHEN coalesce(_peer_texts(attributes)[4], _peer_texts(attributes)[5]) IS NOT NULL THEN ''
        ELSE coalesce(':' || _peer_texts(attributes)[3], '')
    END,
    _peer_texts(attributes)[6] || coalesce(':' || _peer_texts(attributes)[7], ''),
    nullif(
        regexp_extract(_peer_texts(attributes)[8], '^[a-zA-Z]+://(?:[^/@]*@)?([^/?#]+)', 1),
        ''
    ),
    _peer_texts(attributes)[9],
    _peer_texts(attributes)[10]
);

COMMENT ON MACRO _peer_address IS 'The address that a client span called, host:port, or the name of its peer.';

-- The kind of database that a client span called; null when it called none.
CREATE MACRO _peer_database(attributes) AS coalesce(
    _peer_texts(attributes)[5],
    _peer_texts(attributes)[4]
);

COMMENT ON MACRO _peer_database IS 'The kind of database that a client span called; null when it called none.';

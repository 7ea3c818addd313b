-- The rule by which time is sorted: what kind of work a span is. The kinds are model, tool, verify,
-- sandbox, agent (what drives the rollout: driver, environment and agent servers) and unaccounted.

-- The path that a request asked for, from the span's name or its attributes; '' without one.
CREATE MACRO _path_of_request(name, attributes) AS CASE
    WHEN contains(name, '/') THEN name
    ELSE regexp_extract(
        coalesce(
            attributes->>'url.path',
            attributes->>'http.target',
            regexp_extract(
                coalesce(attributes->>'url.full', attributes->>'http.url'),
                '^[a-zA-Z]+://[^/?#]*(.*)',
                1
            ),
            ''
        ),
        '^[^?#]*'
    )
END;

COMMENT ON MACRO _path_of_request IS 'The path that a request asked for, from the span''s name or its attributes; empty without one.';

-- What a server of no known type does, by a word in its name; null when none is in it.
CREATE MACRO _work_of_service(service_name) AS CASE
    WHEN regexp_matches(service_name, 'sandbox', 'i') THEN 'sandbox'
    WHEN regexp_matches(service_name, 'verif|judge|reward', 'i') THEN 'verify'
    WHEN regexp_matches(service_name, 'agent|environment|driver|orchestrator', 'i') THEN 'agent'
    WHEN regexp_matches(service_name, 'model|llm|inference', 'i') THEN 'model'
    WHEN regexp_matches(service_name, 'tool|resources', 'i') THEN 'tool'
END;

COMMENT ON MACRO _work_of_service IS 'What a server of no known type does, by a word in its name; null when none is in it.';

-- What an operation of OpenTelemetry's GenAI conventions, or a kind of span of OpenInference, is.
-- To look for the words first is many times cheaper than to read the JSON of every span.
CREATE MACRO _work_of_operation(attributes) AS CASE
    WHEN contains(attributes::VARCHAR, '"gen_ai.operation.name"')
        THEN CASE attributes->>'gen_ai.operation.name'
            WHEN 'chat' THEN 'model'
            WHEN 'text_completion' THEN 'model'
            WHEN 'generate_content' THEN 'model'
            WHEN 'embeddings' THEN 'model'
            WHEN 'execute_tool' THEN 'tool'
            WHEN 'invoke_agent' THEN 'agent'
            WHEN 'create_agent' THEN 'agent'
        END
    WHEN contains(attributes::VARCHAR, '"openinference.span.kind"')
        THEN CASE attributes->>'openinference.span.kind'
            WHEN 'LLM' THEN 'model'
            WHEN 'EMBEDDING' THEN 'model'
            WHEN 'TOOL' THEN 'tool'
            WHEN 'RETRIEVER' THEN 'tool'
            WHEN 'EVALUATOR' THEN 'verify'
            WHEN 'AGENT' THEN 'agent'
        END
END;

COMMENT ON MACRO _work_of_operation IS 'What an operation of the GenAI conventions, or a kind of span of OpenInference, is.';

-- What a span says of itself; null when it says nothing, and is part of what its parent is.
CREATE MACRO _work_of(name, kind, server_type, service_name, attributes, is_root) AS CASE
    WHEN name LIKE 'gym.model.%' THEN 'model'
    WHEN name LIKE 'gym.verify%' THEN 'verify'
    WHEN name LIKE 'gym.sandbox.%' THEN 'sandbox'
    WHEN name IN ('gym.rollout', 'gym.job') OR name LIKE 'gym.agent.%' THEN 'agent'
    WHEN server_type = 'responses_api_models' THEN 'model'
    WHEN kind = 'SERVER' AND coalesce(server_type, 'resources_servers') = 'resources_servers'
        AND _path_of_request(name, attributes) LIKE '%/verify'
        THEN 'verify'
    WHEN server_type = 'resources_servers' THEN 'tool'
    WHEN kind IN ('SERVER', 'CONSUMER') AND server_type IN (
            'responses_api_agents',
            'environment_servers',
            'driver',
            'supervisor',
            'orchestrator'
        )
        THEN 'agent'
    ELSE coalesce(
        _work_of_operation(attributes),
        CASE
            WHEN kind IN ('SERVER', 'CONSUMER') THEN _work_of_service(service_name)
        END,
        CASE
            WHEN is_root THEN 'agent'
            WHEN kind IN ('SERVER', 'CONSUMER') THEN 'unaccounted'
        END
    )
END;

COMMENT ON MACRO _work_of IS 'What kind of work a span says that it is; null when it says nothing, and is part of what its parent is.';

-- What a part of something is, within the nearest agent: a sandbox stays one wherever it is used;
-- else all that is done for a verification is verify; else of models and tools, one called by the
-- other, the outer one counts.
CREATE MACRO _work_within(outer_work, inner_work) AS CASE
    WHEN 'sandbox' IN (outer_work, inner_work) THEN 'sandbox'
    WHEN 'verify' IN (outer_work, inner_work) THEN 'verify'
    WHEN outer_work IN ('model', 'tool') THEN outer_work
    WHEN inner_work IN ('model', 'tool') THEN inner_work
    ELSE coalesce(outer_work, inner_work)
END;

COMMENT ON MACRO _work_within IS 'What a part of something is: sandbox, else verify, else the outer one of model and tool.';

-- What an agent calls where the other half of the call is not in the input: by the path that it asked
-- for, else by a word in the span's name.
CREATE MACRO _work_of_callee(name, attributes) AS CASE
    WHEN regexp_matches(
            _path_of_request(name, attributes),
            '/(responses|(chat/)?completions|messages|embeddings)$'
        )
        THEN 'model'
    WHEN _path_of_request(name, attributes) LIKE '%/verify' THEN 'verify'
    WHEN _path_of_request(name, attributes) LIKE '%/run' THEN 'agent'
    WHEN _path_of_request(name, attributes) = '' THEN coalesce(_work_of_service(name), 'tool')
    ELSE 'tool'
END;

COMMENT ON MACRO _work_of_callee IS 'What an agent calls where the other half of the call is not in the input.';

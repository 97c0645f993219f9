//! Every name that the graph uses.
//!
//! What the specification or the shipped original calls something stays in `tg:`; what is ours alone
//! is in `trellis:`. Properties are constants of their namespace, classes of its `class` module,
//! because the two often share a word (`tg:Thought`, `tg:thought`).

/// The named graph of everything that happens at query time.
pub const GRAPH_RETRIEVAL: &str = "urn:graph:retrieval";

/// What stands as `tg:action` for a reply that could not be read.
pub const PARSE_ERROR: &str = "__parse_error__";

/// The prefixes under which exports shorten names.
pub const PREFIXES: &[(&str, &str)] =
    &[("rdf", rdf::NS), ("rdfs", rdfs::NS), ("prov", prov::NS), ("tg", tg::NS), ("trellis", trellis::NS)];

/// Every class and property, one list per namespace.
pub const ALL: &[&[&str]] = &[rdf::ALL, rdfs::ALL, prov::ALL, tg::ALL, trellis::ALL];

macro_rules! namespace {
    (
        $(#[$doc:meta])* $module:ident = $namespace:literal
        classes { $($class:ident = $class_name:literal),* $(,)? }
        properties { $($property:ident = $property_name:literal),* $(,)? }
    ) => {
        $(#[$doc])*
        pub mod $module {
            pub const NS: &str = $namespace;

            pub mod class {
                $(pub const $class: &str = concat!($namespace, $class_name);)*
            }

            $(pub const $property: &str = concat!($namespace, $property_name);)*

            pub const ALL: &[&str] = &[$(class::$class,)* $($property,)*];
        }
    };
}

namespace! {
    /// RDF itself.
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    classes {}
    properties { TYPE = "type" }
}

namespace! {
    /// RDF Schema.
    rdfs = "http://www.w3.org/2000/01/rdf-schema#"
    classes {}
    properties { LABEL = "label" }
}

namespace! {
    /// The W3C's provenance ontology.
    prov = "http://www.w3.org/ns/prov#"
    classes {
        ACTIVITY = "Activity",
        AGENT = "Agent",
        ENTITY = "Entity",
    }
    properties {
        ALTERNATE_OF = "alternateOf",
        ENDED_AT_TIME = "endedAtTime",
        GENERATED_AT_TIME = "generatedAtTime",
        STARTED_AT_TIME = "startedAtTime",
        WAS_ASSOCIATED_WITH = "wasAssociatedWith",
        WAS_ATTRIBUTED_TO = "wasAttributedTo",
        WAS_DERIVED_FROM = "wasDerivedFrom",
        WAS_GENERATED_BY = "wasGeneratedBy",
        WAS_INFLUENCED_BY = "wasInfluencedBy",
    }
}

namespace! {
    /// The names of the specification and of the shipped original.
    tg = "https://trustgraph.ai/ns/"
    classes {
        AGENT_QUESTION = "AgentQuestion",
        ANALYSIS = "Analysis",
        ANSWER = "Answer",
        CHUNK_SELECTION = "ChunkSelection",
        CONCLUSION = "Conclusion",
        DECOMPOSITION = "Decomposition",
        DOC_RAG_QUESTION = "DocRagQuestion",
        EDGE_SELECTION = "EdgeSelection",
        ERROR = "Error",
        EXPLORATION = "Exploration",
        FAN_OUT = "FanOut",
        FINDING = "Finding",
        FOCUS = "Focus",
        GRAPH_RAG_QUESTION = "GraphRagQuestion",
        GROUNDING = "Grounding",
        OBSERVATION = "Observation",
        PATTERN_DECISION = "PatternDecision",
        PLAN = "Plan",
        QUESTION = "Question",
        REFLECTION = "Reflection",
        ROUTING_DECISION = "RoutingDecision",
        STEP_RESULT = "StepResult",
        SUBAGENT_COMPLETION = "SubagentCompletion",
        SYNTHESIS = "Synthesis",
        THOUGHT = "Thought",
        TOOL_USE = "ToolUse",
    }
    properties {
        ACTION = "action",
        ARGUMENTS = "arguments",
        CANDIDATE_PATTERNS = "candidatePatterns",
        CHUNK_COUNT = "chunkCount",
        CONCEPT = "concept",
        CORRELATION_ID = "correlationId",
        DOCUMENT = "document",
        EDGE = "edge",
        EDGE_COUNT = "edgeCount",
        ENTITY = "entity",
        EXPECTED_SIBLINGS = "expectedSiblings",
        IN_TOKEN = "inToken",
        LLM_DURATION_MS = "llmDurationMs",
        LLM_MODEL = "llmModel",
        OBSERVATION = "observation",
        OUT_TOKEN = "outToken",
        PARENT_CORRELATION_ID = "parentCorrelationId",
        PARENT_SESSION_ID = "parentSessionId",
        PATTERN = "pattern",
        PLAN_STEP = "planStep",
        QUERY = "query",
        REASONING = "reasoning",
        RESULT = "result",
        ROUTING_RATIONALE = "routingRationale",
        SCORE = "score",
        SELECTED_CHUNK = "selectedChunk",
        SELECTED_EDGE = "selectedEdge",
        SELECTED_PATTERN = "selectedPattern",
        STATUS = "status",
        STEP_NUMBER = "stepNumber",
        SUBAGENT_GOAL = "subagentGoal",
        SUBAGENT_GOALS = "subagentGoals",
        SUBAGENT_SESSION_ID = "subagentSessionId",
        TASK_TYPE = "taskType",
        TERMINATION_REASON = "terminationReason",
        THOUGHT = "thought",
        TOOL_CANDIDATE = "toolCandidate",
        TOOL_DURATION_MS = "toolDurationMs",
        TOOL_ERROR = "toolError",
    }
}

namespace! {
    /// Our own names.
    trellis = "urn:trellis:ns:"
    classes {
        ACT = "Act",
        BROUGHT_HISTORY = "BroughtHistory",
        CONFIGURATION = "Configuration",
        CRITIQUE = "Critique",
        DECISION = "Decision",
        JOIN = "Join",
        LATE_REPLY = "LateReply",
        LATE_RESULT = "LateResult",
        MODERATION = "Moderation",
        PARKED_ANSWER = "ParkedAnswer",
        PARKED_QUESTION = "ParkedQuestion",
        PLAN_REVIEW = "PlanReview",
        PLANNED_STEP = "PlannedStep",
        REVIEW = "Review",
        TOLD = "ToldMessage",
        UNFINISHED_STEP = "UnfinishedStep",
        UNUSED_REPLY = "UnusedReply",
        VERDICT = "Verdict",
    }
    properties {
        ACT = "act",
        AGREEMENT = "agreement",
        ANSWERED_BY = "answeredBy",
        ARGUMENTS = "arguments",
        ATTEMPT = "attempt",
        CHOSEN = "chosen",
        CITES = "cites",
        COMPLETION = "completion",
        CONFIDENCE = "confidence",
        CONFIG_VERSION = "configVersion",
        CONFIGURATION = "configuration",
        CONVERSATION_ID = "conversationId",
        DEADLINE = "deadline",
        DECIDED_BY = "decidedBy",
        DECISION = "decision",
        DECISION_KIND = "decisionKind",
        DEPENDS_ON_PLANNED = "dependsOnPlanned",
        DEPENDS_ON_STEP = "dependsOnStep",
        DISSENT = "dissent",
        DOCUMENT_HASH = "documentHash",
        BROUGHT_HISTORY = "broughtHistory",
        BROUGHT_STEPS = "broughtSteps",
        EARLIER_QUESTION = "earlierQuestion",
        ENFORCEMENT = "enforcement",
        EXCLUDED_OPTION = "excludedOption",
        FAILED_ATTEMPT = "failedAttempt",
        FAN_OUT = "fanOut",
        FOR_GOAL = "forGoal",
        GOAL = "goal",
        HEARD = "heard",
        IDEMPOTENCY_KEY = "idempotencyKey",
        JOIN = "join",
        JOIN_CAUSE = "joinCause",
        JOINED = "joined",
        LATE = "late",
        LATE_NODE = "lateNode",
        LIMITS = "limits",
        MENDED = "mended",
        MESSAGE_ID = "messageId",
        MISSING_FINDING = "missingFinding",
        MISSING_STEP = "missingStep",
        MODEL_CALLS = "modelCalls",
        MODEL_MS = "modelMs",
        OPTION = "option",
        OPTION_SOURCE = "optionSource",
        OUTAGE_MS = "outageMs",
        PASSAGE = "passage",
        PLANNED = "planned",
        PLANNED_STEP = "plannedStep",
        RATIONALE = "rationale",
        REJECTED_REPLY = "rejectedReply",
        REPLAN_REASON = "replanReason",
        REPLY_FORMAT = "replyFormat",
        REQUEST_ID = "requestId",
        REVIEW = "review",
        REVIEWED_FINDING = "reviewedFinding",
        RUN = "run",
        RUN_AGENTS = "runAgents",
        RUN_IN_TOKEN = "runInToken",
        RUN_MODEL_CALLS = "runModelCalls",
        RUN_MODEL_MS = "runModelMs",
        RUN_OUT_TOKEN = "runOutToken",
        RUN_TOOL_CALLS = "runToolCalls",
        RUN_TOOL_MS = "runToolMs",
        SEQ = "seq",
        SHARE_AGENTS = "shareAgents",
        SHARE_COST_MICROS = "shareCostMicros",
        SHARE_MODEL_CALLS = "shareModelCalls",
        SHARE_TOKENS = "shareTokens",
        SIBLING_INDEX = "siblingIndex",
        SIGNAL = "signal",
        SOUND = "sound",
        STATE = "state",
        STATUS = "status",
        SUPERSEDED_BY = "supersededBy",
        SUPERSEDED_STEP = "supersededStep",
        SURFACE = "surface",
        SURPRISING = "surprising",
        TERMINATION_CRITERIA = "terminationCriteria",
        LEFT_OUT = "leftOut",
        UNCERTAIN_CALL = "uncertainCall",
        TOOL = "tool",
        TOOL_CALLS = "toolCalls",
        TOOL_GROUP = "toolGroup",
        TOOL_HINT = "toolHint",
        TOOL_MS = "toolMs",
        TOTAL_IN_TOKEN = "totalInToken",
        TOTAL_OUT_TOKEN = "totalOutToken",
        UNFINISHED = "unfinished",
        UNFINISHED_STEP = "unfinishedStep",
        UNUSED_REPLY = "unusedReply",
        WORKSPACE = "workspace",
    }
}

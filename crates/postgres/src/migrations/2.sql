-- Quads of runs and of loaded knowledge. A term is named by a hash of itself, so that writing a quad looks nothing up, and
-- the same quads always give the same rows. A place is a workspace, or a collection of one. The last index leaves out the
-- graph of runs, which has nearly all that runs say.

-- What runs say: derived from their records, and may be derived anew at any time.
CREATE TABLE view_quads (
    place bigint NOT NULL,
    s     bytea NOT NULL,
    p     bytea NOT NULL,
    o     bytea NOT NULL,
    g     bytea NOT NULL,
    PRIMARY KEY (place, s, p, o, g)
);
CREATE INDEX view_quads_by_predicate ON view_quads (place, p, o, s, g);
CREATE INDEX view_quads_by_object ON view_quads (place, o, s, p, g);
CREATE INDEX view_quads_by_graph ON view_quads (place, g, p, o, s)
    WHERE g <> '\xca632f4cc51bf1bc54e9db754e370a88'::bytea;
CREATE TABLE view_terms (
    place bigint NOT NULL,
    id    bytea NOT NULL,
    term  bytea NOT NULL,
    PRIMARY KEY (place, id)
);
-- The runs that are in it, with the ids of their nodes, one behind the other: a run that is taken in again replaces what
-- it said of them.
CREATE TABLE view_runs (
    workspace text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    nodes     bytea NOT NULL,
    PRIMARY KEY (workspace, run)
);
-- Runs to be taken in without a new leaf of the log.
CREATE TABLE view_waiting (
    workspace text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, run)
);
-- One row: the first leaf that was not looked at yet, and the projection that everything was derived with.
CREATE TABLE view_cursor (
    one        boolean PRIMARY KEY CHECK (one),
    number     bigint NOT NULL,
    projection int NOT NULL
);

-- What was loaded. Removing a collection gives up its place; what lies there goes afterwards.
CREATE TABLE knowledge_collections (
    workspace  text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    place      bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    quads      bigint NOT NULL DEFAULT 0,
    sources    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, collection)
);
CREATE TABLE knowledge_sources (
    place    bigint NOT NULL,
    name     bytea NOT NULL,
    finished boolean NOT NULL,
    loader   bytea,
    PRIMARY KEY (place, name)
);
CREATE TABLE knowledge_quads (
    place bigint NOT NULL,
    s     bytea NOT NULL,
    p     bytea NOT NULL,
    o     bytea NOT NULL,
    g     bytea NOT NULL,
    PRIMARY KEY (place, s, p, o, g)
);
CREATE INDEX knowledge_quads_by_predicate ON knowledge_quads (place, p, o, s, g);
CREATE INDEX knowledge_quads_by_object ON knowledge_quads (place, o, s, p, g);
CREATE INDEX knowledge_quads_by_graph ON knowledge_quads (place, g, p, o, s)
    WHERE g <> '\xca632f4cc51bf1bc54e9db754e370a88'::bytea;
CREATE TABLE knowledge_terms (
    place bigint NOT NULL,
    id    bytea NOT NULL,
    term  bytea NOT NULL,
    PRIMARY KEY (place, id)
);
CREATE TABLE knowledge_removed (place bigint PRIMARY KEY);

-- Texts are compared by their bytes, as every other store does. What people write is kept as bytes: it may hold what a
-- text of a database must not.

CREATE TABLE runs (
    workspace    text COLLATE "C" NOT NULL,
    run          text COLLATE "C" NOT NULL,
    started      bigint NOT NULL,
    state        text COLLATE "C" NOT NULL,
    has_ended    boolean NOT NULL,
    pattern      text COLLATE "C",
    conversation text COLLATE "C",
    searched     text NOT NULL,
    summary      bytea NOT NULL,
    PRIMARY KEY (workspace, run)
) WITH (fillfactor = 80);
CREATE INDEX runs_listed ON runs (workspace, started DESC, run DESC);
CREATE INDEX runs_of_conversation ON runs (workspace, conversation, started DESC, run DESC) WHERE conversation IS NOT NULL;
CREATE INDEX runs_open ON runs (started) WHERE NOT has_ended;

-- A record as it is written everywhere; what stands beside it is read from it.
CREATE TABLE records (
    workspace text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    session   text COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    content   bytea NOT NULL,
    stored    bytea NOT NULL,
    -- The hashes of its large texts, one behind the other.
    texts     bytea NOT NULL,
    PRIMARY KEY (workspace, run, seq)
);
-- A name is taken once, whatever a committer believes.
CREATE UNIQUE INDEX records_by_name ON records (workspace, session, name);
CREATE INDEX records_by_version ON records (workspace, session, version);

-- Large texts of records, by their hash.
CREATE TABLE texts (
    workspace text COLLATE "C" NOT NULL,
    hash      bytea NOT NULL,
    text      bytea NOT NULL,
    PRIMARY KEY (workspace, hash)
);

CREATE TABLE turns (
    workspace     text COLLATE "C" NOT NULL,
    flow          text COLLATE "C" NOT NULL,
    run           text COLLATE "C" NOT NULL,
    session       text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    due           bigint,
    is_root       boolean NOT NULL,
    begun         int NOT NULL DEFAULT 0,
    claim_process bigint,
    claim_number  bigint,
    claim_until   timestamptz,
    PRIMARY KEY (workspace, flow, run, session, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX turns_at_once ON turns (workspace, flow, run, session, name) WHERE due IS NULL;
CREATE INDEX turns_delayed ON turns (due) WHERE due IS NOT NULL;
CREATE INDEX turns_of_run ON turns (workspace, run);

-- Sessions that cannot be read, and why.
CREATE TABLE aside (
    workspace text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    reason    text NOT NULL,
    at        bigint NOT NULL,
    PRIMARY KEY (workspace, session)
);

-- One row: when somebody last served. Times in which nobody did are kept as long as a run is open that began before.
CREATE TABLE served (one boolean PRIMARY KEY CHECK (one), last timestamptz NOT NULL);
CREATE TABLE outages (began bigint PRIMARY KEY, ended bigint NOT NULL);

-- What the log is to have, in the transaction that writes it.
CREATE TABLE unsequenced (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind      smallint NOT NULL,
    -- A record.
    workspace text COLLATE "C",
    run       text COLLATE "C",
    seq       bigint,
    -- Anything else, by the key that is hashed with it.
    key       bytea,
    hash      bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);

-- The log. The nodes of the tree that are whole with a leaf, from the leaf upwards, one behind the other.
CREATE TABLE leaves (
    number    bigint PRIMARY KEY,
    kind      smallint NOT NULL,
    workspace text COLLATE "C",
    run       text COLLATE "C",
    seq       bigint,
    key       bytea,
    nodes     bytea NOT NULL
);
CREATE UNIQUE INDEX leaves_of_records ON leaves (workspace, run, seq) WHERE workspace IS NOT NULL;

-- The key that signs checkpoints.
CREATE TABLE log_key (one boolean PRIMARY KEY CHECK (one), pkcs8 bytea NOT NULL);

CREATE TABLE config_versions (
    workspace text COLLATE "C" PRIMARY KEY,
    version   bigint NOT NULL
);
CREATE TABLE config_items (
    workspace text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    value     bytea NOT NULL,
    PRIMARY KEY (workspace, kind, key)
);
-- Who changed what, under the keys that every store has for it: they are part of what the log proves.
CREATE TABLE config_changes (
    key   bytea PRIMARY KEY,
    value bytea NOT NULL
);
CREATE TABLE snapshots (
    workspace text COLLATE "C" NOT NULL,
    hash      bytea NOT NULL,
    settings  bytea NOT NULL,
    PRIMARY KEY (workspace, hash)
);

CREATE TABLE uploads (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    document  bytea NOT NULL,
    size      bigint NOT NULL,
    piece     bigint NOT NULL,
    began     bigint NOT NULL,
    PRIMARY KEY (workspace, id)
);
-- Content lies under the id of the upload that brought it, so a document appears with one row.
CREATE TABLE pieces (
    workspace text COLLATE "C" NOT NULL,
    upload    text COLLATE "C" NOT NULL,
    at        int NOT NULL,
    hash      bytea NOT NULL,
    content   bytea NOT NULL,
    PRIMARY KEY (workspace, upload, at)
);
-- Not compressed, so that a part of it can be read alone.
ALTER TABLE pieces ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE documents (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    parent    text COLLATE "C",
    document  bytea NOT NULL,
    sha256    bytea NOT NULL,
    upload    text COLLATE "C" NOT NULL,
    piece     bigint NOT NULL,
    PRIMARY KEY (workspace, id)
);
CREATE INDEX documents_by_parent ON documents (workspace, parent, id) WHERE parent IS NOT NULL;
CREATE TABLE processings (
    workspace  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    processing bytea NOT NULL,
    PRIMARY KEY (workspace, id)
);

-- Wake-ups. They may be lost with the server: the turns themselves are in the journal.
CREATE UNLOGGED TABLE wakeups (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    role      smallint NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    flow      text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    due       bigint,
    is_root   boolean NOT NULL,
    begun     int NOT NULL,
    cut_times int NOT NULL,
    cut_alone int NOT NULL,
    -- Its place among those that are ready; none before that.
    slot      bigint,
    ready     timestamptz NOT NULL,
    count     int NOT NULL,
    -- Handed out until then, unless it is renewed.
    out_until timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNIQUE INDEX wakeups_waiting ON wakeups (role, workspace, flow, run, session, name) WHERE out_until IS NULL;
CREATE INDEX wakeups_in_order ON wakeups (role, slot, id) WHERE out_until IS NULL AND slot IS NOT NULL;
CREATE INDEX wakeups_delayed ON wakeups (role, ready) WHERE out_until IS NULL AND slot IS NULL;
CREATE INDEX wakeups_out ON wakeups (role, out_until) WHERE out_until IS NOT NULL;
-- How far each workspace has come, so that none keeps others waiting.
CREATE UNLOGGED TABLE wakeup_lanes (
    role      smallint NOT NULL,
    is_root   boolean NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    slot      bigint NOT NULL,
    PRIMARY KEY (role, is_root, workspace)
) WITH (fillfactor = 50);

-- What processes tell each other, for a minute.
CREATE UNLOGGED TABLE told (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    messages bytea NOT NULL
);

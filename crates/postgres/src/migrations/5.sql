-- What was promised to somebody outside and is not done yet, and which process holds it.
CREATE TABLE notes (
    name      text COLLATE "C" PRIMARY KEY,
    kind      text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    flow      text COLLATE "C" NOT NULL,
    note      bytea NOT NULL,
    holder    text COLLATE "C",
    held_at   timestamptz NOT NULL
);
CREATE INDEX notes_of_flows ON notes (workspace, flow, kind);
CREATE INDEX notes_of_holders ON notes (holder);
CREATE TABLE note_lines (
    name text COLLATE "C" NOT NULL REFERENCES notes ON DELETE CASCADE,
    at   bigint GENERATED ALWAYS AS IDENTITY,
    line bytea NOT NULL,
    PRIMARY KEY (name, at)
);

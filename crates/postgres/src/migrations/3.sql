-- Rows of tables. What a row is told apart by, and the values that it is found by, are bytes that sort as the values do.
-- Removing a table gives up its place; what lies there goes afterwards.
CREATE TABLE row_tables (
    workspace  text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    name       bytea NOT NULL,
    place      bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    layout     bytea NOT NULL,
    rows       bigint NOT NULL DEFAULT 0,
    -- Lists in JSON.
    unfinished bytea NOT NULL,
    loaded_by  bytea NOT NULL,
    PRIMARY KEY (workspace, collection, name)
);
CREATE TABLE row_rows (
    place bigint NOT NULL,
    key   bytea NOT NULL,
    stored bytea NOT NULL,
    PRIMARY KEY (place, key)
);
CREATE TABLE row_entries (
    place bigint NOT NULL,
    field smallint NOT NULL,
    value bytea NOT NULL,
    key   bytea NOT NULL,
    PRIMARY KEY (place, field, value, key)
);
CREATE TABLE row_vectors (
    place bigint NOT NULL,
    space bytea NOT NULL,
    -- A hash of field and text.
    id    bytea NOT NULL,
    field bytea NOT NULL,
    text  bytea NOT NULL,
    signs bit varying NOT NULL,
    vector bytea NOT NULL,
    PRIMARY KEY (place, space, id)
);
-- Not compressed: these are numbers.
ALTER TABLE row_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;
CREATE TABLE row_removed (place bigint PRIMARY KEY);

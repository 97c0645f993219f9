-- Passages of documents and names of entities, found by their words and by their meaning.
-- Removing a collection gives up its place; what lies there goes afterwards.
CREATE TABLE search_collections (
    -- What is searched: documents or entities.
    kind       text COLLATE "C" NOT NULL,
    workspace  text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    place      bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    passages   bigint NOT NULL DEFAULT 0,
    -- How many words its passages have, and how many stand above them: titles and headings.
    text_words  bigint NOT NULL DEFAULT 0,
    above_words bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, workspace, collection)
);
CREATE TABLE search_documents (
    place  bigint NOT NULL,
    id     text COLLATE "C" NOT NULL,
    listed bytea NOT NULL,
    PRIMARY KEY (place, id)
);
-- A document lies in blocks of up to 256 passages, which are written and removed whole.
CREATE TABLE search_blocks (
    place    bigint NOT NULL,
    block    bigint NOT NULL,
    document text COLLATE "C" NOT NULL,
    first    bigint NOT NULL,
    passages bigint NOT NULL,
    text_words  bigint NOT NULL,
    above_words bigint NOT NULL,
    -- Which vectors its passages have, if they have any.
    space    bytea,
    PRIMARY KEY (place, block)
);
CREATE INDEX search_blocks_of_documents ON search_blocks (place, document);
CREATE SEQUENCE search_block_numbers;
CREATE TABLE search_passages (
    place  bigint NOT NULL,
    block  bigint NOT NULL,
    at     smallint NOT NULL,
    stored bytea NOT NULL,
    PRIMARY KEY (place, block, at)
);
-- In which passages of a block a word is, how often, and how long these are; in how many texts, and above how many.
CREATE TABLE search_words (
    place  bigint NOT NULL,
    word   text COLLATE "C" NOT NULL,
    block  bigint NOT NULL,
    texts  smallint NOT NULL,
    aboves smallint NOT NULL,
    entries bytea NOT NULL,
    PRIMARY KEY (place, word, block)
);
CREATE INDEX search_words_of_blocks ON search_words (block);
-- The same numbers for all blocks of a place.
CREATE TABLE search_frequencies (
    place  bigint NOT NULL,
    word   text COLLATE "C" NOT NULL,
    texts  bigint NOT NULL,
    aboves bigint NOT NULL,
    PRIMARY KEY (place, word)
);
CREATE TABLE search_vectors (
    place  bigint NOT NULL,
    block  bigint NOT NULL,
    at     smallint NOT NULL,
    space  bytea NOT NULL,
    signs  bit varying NOT NULL,
    vector bytea NOT NULL,
    PRIMARY KEY (place, block, at)
);
-- Not compressed: these are numbers. And apart, so that looking at all signs reads little else.
ALTER TABLE search_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;
ALTER TABLE search_vectors SET (toast_tuple_target = 128);
-- How many vectors there are of a model and length.
CREATE TABLE search_spaces (
    place   bigint NOT NULL,
    space   bytea NOT NULL,
    vectors bigint NOT NULL,
    PRIMARY KEY (place, space)
);
CREATE TABLE search_removed (place bigint PRIMARY KEY);

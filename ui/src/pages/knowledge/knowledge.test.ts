import { describe, expect, it } from 'vitest';
import { fieldsOf, isName, linesAround, placeOf, records, size, sortOf, tableOf } from './files';
import { collectionsOf, readFound, readLines, summed, textOf, type StoredDocument } from './knowledge';

const document = (id: string, changes: Partial<StoredDocument> = {}): StoredDocument => ({
  id, time: 0, kind: 'text/markdown', title: id, tags: ['collection:a', 'searchable'], size: 1, ...changes,
});

describe('files', () => {
  it('are known by their names', () => {
    expect([sortOf('a.TTL')?.format, sortOf('x/b.pdf')?.kind, sortOf('c.jsonl')?.format]).toEqual(['turtle', 'document', 'jsonl']);
    for (const name of ['noending', 'a.exe', 'a.constructor', 'ttl']) expect(sortOf(name), name).toBeNull();
    expect([tableOf('dir/My Cities (2).csv'), tableOf('…')]).toEqual(['my_cities_2', 'table']);
    expect([isName('a.b-c'), isName('a b'), isName('')]).toEqual([true, false, false]);
    expect([size(12), size(2695), size(64_000_000)]).toEqual(['12 B', '2.7 kB', '64.0 MB']);
  });
  it('are wrong at a place that messages name', () => {
    expect(placeOf('bad.ttl:3:7: No scheme found')).toEqual({ line: 3, column: 7 });
    expect(placeOf('rows.csv: line 12: too many cells')).toEqual({ line: 12, column: null });
    expect(placeOf('rows.csv:12: too many cells')).toEqual({ line: 12, column: null });
    expect(placeOf('the file is empty')).toBeNull();
    expect(linesAround('a\r\nb\nc\nd', 2)).toEqual([{ number: 1, text: 'a' }, { number: 2, text: 'b' }, { number: 3, text: 'c' }]);
    expect(linesAround('a', 1)).toEqual([{ number: 1, text: 'a' }]);
  });
  it('of rows show their fields', () => {
    expect(fieldsOf('First Name;Age;Score;ok\n"Doe; ""J""";3;1.5;true\nx;4;2;FALSE\ncut', 'csv')).toEqual([
      { name: 'first_name', type: 'string' }, { name: 'age', type: 'integer' }, { name: 'score', type: 'float' }, { name: 'ok', type: 'boolean' },
    ]);
    // Numbers with a zero in front are names of something.
    expect(fieldsOf('zip\n01234\n99999\n', 'csv')).toEqual([{ name: 'zip', type: 'string' }]);
    expect(fieldsOf('a,b', 'csv').map(({ name }) => name)).toEqual(['a', 'b']);
    expect(fieldsOf('{"n": 1, "s": "2"}\n{"n": 2}\nno', 'jsonl')).toEqual([{ name: 'n', type: 'integer' }, { name: 's', type: 'string' }]);
    expect(fieldsOf('', 'csv')).toEqual([]);
  });
  it('of CSV keep lines within quotes together', () => {
    expect(records('a,"b\nc"\r\nd,e\n', ',')).toEqual([['a', 'b\nc'], ['d', 'e']]);
  });
});

describe('what is loaded', () => {
  it('is summed by collection', () => {
    const rows = summed({
      collections: [{ collection: 'a', quads: 29, sources: 1, unfinished: ['x.ttl'] }],
      tables: [{ collection: 'b', table: 't', rows: 5, unfinished: [] }],
      documents: [document('1'), document('1/text', { 'parent-id': '1' }), document('2', { tags: [] })],
      described: ['default'], schemas: [],
    });
    expect(rows.map(({ name, quads, documents, rows, unfinished }) => [name, quads, documents, rows, unfinished])).toEqual([
      ['a', 29, 1, 0, ['x.ttl']], ['b', 0, 0, 5, []], ['default', 0, 0, 0, []],
    ]);
  });
  it('has its text beside it or is it', () => {
    const all = [document('1'), document('1/text', { 'parent-id': '1' }), document('2')];
    expect([textOf(all[0]!, all), textOf(all[2]!, all)]).toEqual(['1/text', '2']);
    expect(collectionsOf(all[0]!)).toEqual(['a']);
  });
});

describe('what was found', () => {
  const passages = [{ title: 'T', document: 'd', source: 's', headings: [], lines: [1, 2], text: 'x', score: 1 }];
  it('is read from an event or a plain reply', () => {
    const reply = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { structuredContent: { passages, statements: [], notes: ['n'] } } });
    expect(readFound(`: hello\n\ndata: ${reply}\n\n`).passages).toEqual(passages);
    expect(readFound(reply).notes).toEqual(['n']);
  });
  it('is an error if the server says so', () => {
    expect(() => readFound('{"result": {"isError": true, "content": [{"text": "no such collection"}]}}')).toThrow('no such collection');
    expect(() => readFound('{"error": {"message": "wrong"}}')).toThrow('wrong');
    expect(() => readFound('<html>')).toThrow('could not be read');
  });
  it('leads to its lines', () => {
    expect([readLines('3-4'), readLines('4-3'), readLines('0-1'), readLines(null)]).toEqual([[3, 4], null, null, null]);
  });
});

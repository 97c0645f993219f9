import { describe, expect, it } from 'vitest';
import { documentAddress, pieces } from './passages';

describe('places in documents', () => {
  it('are found in what tools brought, and nothing of the text is lost', () => {
    const text = '2 passages.\n\n(p1) Handbook › Part 1 (lines 1–2 of urn:trellis:document:a/text)\nRefunds.\n\n(p2) Handbook (line 7 of urn:b)\nClosed.';
    const found = pieces(text);
    expect(found.map((piece) => piece.text).join('')).toBe(text);
    expect(found.flatMap(({ place }) => (place ? [place] : []))).toEqual([
      { document: 'urn:trellis:document:a/text', lines: [1, 2] }, { document: 'urn:b', lines: [7, 7] },
    ]);
  });

  it('are only what names a document', () => {
    for (const text of ['', 'nothing', '(lines 1–2 of code.rs)', '(lines 1 of javascript:alert(1))', '(lines x of urn:a)']) expect(pieces(text).filter(({ place }) => place)).toEqual([]);
  });

  it('lead to the text', () => {
    expect(documentAddress('urn:a b', [3, 4])).toBe('/knowledge/document?id=urn%3Aa+b&lines=3-4');
  });
});

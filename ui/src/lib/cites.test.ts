import { describe, expect, it } from 'vitest';
import { citesAt, citesIn, citeWords, readCite } from './cites';

describe('citations', () => {
  it('are read as the server reads them', () => {
    const words = (text: string): string[] => citesIn(text).map(citeWords);
    expect(words('a [finding 0] b [Findings 1, 2] [step 3] [4] [finding 0]')).toEqual(['finding 0', 'finding 1', 'finding 2', 'step 3', '4']);
    expect(words('[step 0, step 3] [1; 2] [#7] [observation 5]')).toEqual(['step 0', 'step 3', '1', '2', '7', 'observation 5']);
    expect(words('[see 1] [link 2](https://example.org) [1](https://example.org) [x] [1.5] [] [12345]')).toEqual([]);
  });

  it('come back from an address', () => {
    for (const words of ['finding 2', 'step 0', '1']) expect(citeWords(readCite(words)!)).toBe(words);
    expect(readCite('nonsense')).toBeNull();
    expect(readCite(null)).toBeNull();
    expect(citesAt('no bracket first [1]')).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { Journal, type RecordPage } from './journal';

/** A server whose pages have that many records. */
function server(records: number[], most: number): { page: (after: number) => Promise<RecordPage>; asked: number[] } {
  const asked: number[] = [];
  const page = (after: number): Promise<RecordPage> => {
    asked.push(after);
    const left = records.filter((seq) => seq > after);
    return Promise.resolve({ records: left.slice(0, most), next: left.length > most ? left[most - 1]! : null });
  };
  return { page, asked };
}

describe('the records of a run', () => {
  it('are read page by page to the last one', async () => {
    const told: number[] = [];
    const journal = new Journal(server([1, 2, 3, 4, 5, 6, 7], 3).page);
    expect(await journal.readOn((count) => told.push(count), () => true)).toBe(true);
    expect(journal.records).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(told).toEqual([3, 6, 7]);
  });

  it('are read on from the newest page while the run goes on', async () => {
    const records = [1, 2, 3, 4];
    const { page, asked } = server(records, 3);
    const journal = new Journal(page);
    await journal.readOn(() => {}, () => true);
    records.push(5, 6, 7, 8);
    await journal.readOn(() => {}, () => true);
    expect(journal.records).toEqual(records);
    expect(asked).toEqual([0, 3, 3, 6]);
  });

  it('are no more read for a reader who has left, nor for ever', async () => {
    const { page, asked } = server([1, 2, 3, 4, 5], 1);
    expect(await new Journal(page).readOn(() => {}, () => asked.length < 2)).toBe(false);
    expect(asked).toEqual([0, 1]);
    const stuck = new Journal(() => Promise.resolve({ records: [1], next: 0 }));
    await expect(stuck.readOn(() => {}, () => true)).rejects.toThrow('same records');
  });
});

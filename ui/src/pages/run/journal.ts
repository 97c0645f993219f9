/** All records of a run. The server gives them in pages, and a page of long texts is a short one: none may be left out unsaid. */

export interface RecordPage {
  records: unknown[];
  /** Where the next page begins, as far as there is one for now. */
  next?: number | null;
}

export class Journal {
  /** Of pages that have another one behind them: these never change. */
  #whole: unknown[] = [];
  /** Of the newest page, which grows while the run goes on. */
  #newest: unknown[] = [];
  #after = 0;
  readonly #page: (after: number) => Promise<RecordPage>;

  constructor(page: (after: number) => Promise<RecordPage>) {
    this.#page = page;
  }

  get records(): unknown[] {
    return [...this.#whole, ...this.#newest];
  }

  /** Reads on to the end, and tells after each page how many records are there. False if it was stopped before. */
  async readOn(told: (count: number) => void, isWanted: () => boolean): Promise<boolean> {
    for (;;) {
      const { records, next } = await this.#page(this.#after);
      if (!isWanted()) return false;
      told(this.#whole.length + records.length);
      if (next === null || next === undefined) {
        this.#newest = records;
        return true;
      }
      if (next <= this.#after) throw new Error('The server gave the same records twice, so the rest could not be read.');
      this.#whole = [...this.#whole, ...records];
      this.#newest = [];
      this.#after = next;
    }
  }
}

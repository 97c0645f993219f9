/** Server-sent events, read from a stream of bytes: the browser's own reader cannot send a token. */

export interface SseEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Cuts text into events, however it arrives in pieces. */
export class SseParser {
  #rest = '';
  #id: string | null = null;
  #event = 'message';
  #data: string[] = [];

  push(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    this.#rest += text;
    let start = 0;
    for (;;) {
      const end = this.#rest.indexOf('\n', start);
      if (end < 0) break;
      const line = this.#rest.slice(start, this.#rest[end - 1] === '\r' ? end - 1 : end);
      start = end + 1;
      const event = this.#line(line);
      if (event) events.push(event);
    }
    this.#rest = this.#rest.slice(start);
    return events;
  }

  #line(line: string): SseEvent | null {
    if (line === '') {
      const whole = this.#data.length > 0 ? { id: this.#id, event: this.#event, data: this.#data.join('\n') } : null;
      this.#id = null;
      this.#event = 'message';
      this.#data = [];
      return whole;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') this.#id = value;
    else if (name === 'event') this.#event = value;
    else if (name === 'data') this.#data.push(value);
    return null;
  }
}

/** What holds for the whole page: who is asked as, which workspace, whether the server answers, how it looks. */

export type Theme = 'system' | 'light' | 'dark';

const kept = (storage: Storage, key: string): string | null => {
  try {
    return storage.getItem(key);
  } catch {
    return null; // Storage may be forbidden; the page works without.
  }
};
const keep = (storage: Storage, key: string, value: string | null): void => {
  try {
    if (value === null) storage.removeItem(key);
    else storage.setItem(key, value);
  } catch {
    // As above.
  }
};

class Session {
  /** The bearer token; kept for this tab only. */
  token = $state<string | null>(null);
  /** Empty for the caller's own. */
  workspace = $state('');
  workspaces = $state<string[]>([]);
  theme = $state<Theme>('system');
  connected = $state(true);
  /** Whether single keys do something while no field has the focus. */
  keys = $state(true);
  /** Why a token is asked for; null if none is. */
  tokenWanted = $state<string | null>(null);
  /** What is read aloud by screen readers. */
  announcement = $state('');

  #waiting: ((token: string) => void)[] = [];
  #announcedAt = 0;
  #toAnnounce: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    this.token = kept(sessionStorage, 'trellis.token');
    this.workspace =
      new URLSearchParams(location.search).get('workspace') ?? kept(sessionStorage, 'trellis.workspace') ?? '';
    const theme = kept(localStorage, 'trellis.theme');
    this.setTheme(theme === 'light' || theme === 'dark' ? theme : 'system');
    this.keys = kept(localStorage, 'trellis.keys') !== 'off';
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    keep(localStorage, 'trellis.theme', theme === 'system' ? null : theme);
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  setKeys(on: boolean): void {
    this.keys = on;
    keep(localStorage, 'trellis.keys', on ? null : 'off');
  }

  setWorkspace(name: string): void {
    this.workspace = name;
    keep(sessionStorage, 'trellis.workspace', name || null);
  }

  /** Waits until somebody has given a token. All requests that are refused meanwhile wait for the same one. */
  askForToken(used: string | null): Promise<string> {
    if (this.token !== null && this.token !== used) return Promise.resolve(this.token);
    this.tokenWanted = used === null ? 'This server asks who you are.' : 'The server does not know this token.';
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  giveToken(token: string): void {
    this.token = token;
    keep(sessionStorage, 'trellis.token', token);
    this.tokenWanted = null;
    for (const resolve of this.#waiting.splice(0)) resolve(token);
  }

  forgetToken(): void {
    this.token = null;
    keep(sessionStorage, 'trellis.token', null);
    location.reload();
  }

  /** Says something to screen readers: the newest of what comes in, at most one sentence every few seconds. */
  announce(sentence: string): void {
    const pause = 3000;
    clearTimeout(this.#toAnnounce);
    const wait = Math.max(0, this.#announcedAt + pause - Date.now());
    this.#toAnnounce = setTimeout(() => {
      this.#announcedAt = Date.now();
      this.announcement = sentence;
    }, wait);
  }
}

export const session = new Session();

/** Addresses: a few routes over the History API. */

export type Route =
  | { page: 'ask' }
  | { page: 'runs' }
  | { page: 'run'; id: string }
  | { page: 'compare' }
  | { page: 'configuration'; rest: string[] }
  | { page: 'knowledge'; rest: string[] }
  | { page: 'system'; rest: string[] }
  | { page: 'unknown' };

/** Which page a path names. Parts of it are percent-decoded. */
export function routeOf(path: string): Route {
  const parts = path.split('/').filter((part) => part !== '').map(decoded);
  const [first, ...rest] = parts;
  switch (first) {
    case undefined:
    case 'ask':
    case 'index.html':
      return rest.length === 0 ? { page: 'ask' } : { page: 'unknown' };
    case 'runs':
      if (rest.length === 0) return { page: 'runs' };
      return rest.length === 1 ? { page: 'run', id: rest[0]! } : { page: 'unknown' };
    case 'compare':
      return rest.length === 0 ? { page: 'compare' } : { page: 'unknown' };
    case 'configuration':
    case 'knowledge':
    case 'system':
      return { page: first, rest };
    default:
      return { page: 'unknown' };
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class Router {
  path = $state('/');
  search = $state('');
  route = $derived(routeOf(this.path));
  query = $derived(new URLSearchParams(this.search));

  start(): void {
    this.#read();
    addEventListener('popstate', () => this.#read());
    document.addEventListener('click', (event) => this.#click(event));
  }

  /** Goes to an address of this page. */
  go(address: string, options: { replace?: boolean } = {}): void {
    const samePage = new URL(address, location.href).pathname === location.pathname;
    if (options.replace) history.replaceState(null, '', address);
    else history.pushState(null, '', address);
    this.#read();
    if (!samePage) scrollTo(0, 0);
  }

  /** Changes parameters of the current address; null removes one. No step back is left behind unless `push` is set. */
  set(changes: Record<string, string | null>, options: { push?: boolean } = {}): void {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '') query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    const address = location.pathname + (text ? `?${text}` : '');
    if (address !== location.pathname + location.search) this.go(address, { replace: !options.push });
  }

  #read(): void {
    this.path = location.pathname;
    this.search = location.search;
  }

  /** Links within the page are followed without loading it again. */
  #click(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (link.hash && link.pathname === location.pathname) return;
    if (routeOf(link.pathname).page === 'unknown') return;
    event.preventDefault();
    this.go(link.pathname + link.search + link.hash);
  }
}

export const router = new Router();

/** The address of a run, of a step in it, or of one of its views. */
export function runAddress(id: string, query: Record<string, string> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `/runs/${encodeURIComponent(id)}${text ? `?${text}` : ''}`;
}

/** The address of an item of the configuration, of all of its type, or of the whole, as it was at a version if one is known. */
export function itemAddress(type: string, key = '', version?: number | string | null): string {
  const path = ['/configuration', ...[type, key].filter((part) => part !== '').map(encodeURIComponent)].join('/');
  return path + (version === undefined || version === null || version === '' ? '' : `?version=${encodeURIComponent(version)}`);
}

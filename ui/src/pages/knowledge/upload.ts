/** Sends files with progress, which `fetch` does not tell. */

import { ApiError, address } from '../../lib/api';
import { session } from '../../lib/session.svelte';

interface Sending {
  type: string;
  query?: Record<string, string>;
  /** From 0 to 1; 1 means that the server has all of it and works on it. */
  onProgress: (part: number) => void;
  signal: AbortSignal;
}

/** Sends a body and reads the JSON of its reply. Asks for a token when the server does. */
export async function upload<T>(path: string, body: Blob | string, sending: Sending): Promise<T> {
  for (;;) {
    const token = session.token;
    const { status, text } = await once(path, body, sending, token);
    if (status === 401) {
      await session.askForToken(token);
      continue;
    }
    let reply: unknown = null;
    try {
      reply = JSON.parse(text);
    } catch {
      // Said below.
    }
    const error = (reply as { error?: { message?: string; type?: string } | string } | null)?.error;
    if (status >= 200 && status < 300 && !error) return reply as T;
    const message = typeof error === 'string' ? error : error?.message;
    const kind = typeof error === 'object' ? (error?.type ?? 'error') : 'error';
    throw new ApiError(message ?? (text.slice(0, 500) || `The server answered ${status}.`), status, kind);
  }
}

function once(path: string, body: Blob | string, sending: Sending, token: string | null): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', address(path, { query: sending.query }));
    request.setRequestHeader('content-type', sending.type);
    request.setRequestHeader('accept', 'application/json');
    if (token !== null) request.setRequestHeader('authorization', `Bearer ${token}`);
    request.upload.onprogress = (event) => {
      if (event.lengthComputable && event.total > 0) sending.onProgress(event.loaded / event.total);
    };
    request.onload = () => resolve({ status: request.status, text: request.responseText });
    request.onerror = () => reject(new ApiError('The server cannot be reached, or broke off.', 0, 'unreachable'));
    request.onabort = () => reject(new ApiError('Stopped.', 0, 'stopped'));
    sending.signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(body);
  });
}

/** The bytes of a file in base64, as documents are sent. */
export function base64(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,?/, ''));
    reader.onerror = () => reject(new Error('The browser could not read the file.'));
    reader.readAsDataURL(file);
  });
}

/** Requests JSON from the console's server. */
import { effect } from '@preact/signals-core';
import { visible } from './live-source.ts';

/** Returns null if the server does not respond or rejects the request. */
export async function readJson<T>(path: string): Promise<T | null> {
  const response = await fetch(path).catch(() => null);
  return response?.ok === true ? ((await response.json()) as T) : null;
}

/** Reads again and again while the page shows the result, and whenever a signal that it reads changes. */
export function keepReading(
  isShown: () => boolean,
  everyMs: number,
  read: () => Promise<void>,
): void {
  effect(() => {
    if (!isShown() || !visible.value) return undefined;
    void read();
    const timer = setInterval(() => void read(), everyMs);
    return () => clearInterval(timer);
  });
}

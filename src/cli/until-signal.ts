/** When somebody asks a verb to end that runs until then. */

/** Aborts at the first SIGINT or SIGTERM. A second one of its kind ends the process as the system does. */
export function untilSignal(): AbortSignal {
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ended.abort());
  return ended.signal;
}

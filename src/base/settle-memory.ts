/**
 * Gives back what starting has left behind (parsed files, compiled functions that ran once). To be called when a thread has
 * begun to serve; does nothing unless the runtime was started with `--expose-gc`.
 */
export function settleMemory(): void {
  const gc = (globalThis as { gc?: (options: object) => void }).gc;
  gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

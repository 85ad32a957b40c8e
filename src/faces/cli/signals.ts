/**
 * Sets signal handlers before anything else is loaded. `serve` reloads on SIGUSR1, on which the
 * runtime would open its debugger. Flags of the launchers keep the debugger closed until here
 * (docs/decisions/sigusr1.md).
 */

process.on('SIGUSR1', () => undefined);
// Listening for a signal keeps no process alive, so the other verbs are not affected.

// The system ends every process that does not listen for a signal, except process 1 of a container.
// That one has to end itself until the verb listens.
if (process.pid === 1)
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ] as const)
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1)
        void import('../../server/runtime/end-process.ts').then(({ endProcess }) =>
          endProcess(128 + number),
        );
    });

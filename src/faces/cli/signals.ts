/**
 * Sets signal handlers before anything else loads. `serve` reloads on SIGUSR1, for which the runtime would open its
 * debugger. The launchers' flags keep the debugger closed until here (docs/decisions/sigusr1.md).
 */

process.on('SIGUSR1', () => undefined);
// Signal listeners do not keep a process alive, so other commands are not affected.

// By default, these signals end every process except process 1 of a container, which has to exit itself until the
// command listens.
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

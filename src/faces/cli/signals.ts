/**
 * Installs signal handlers before anything else is loaded. `serve` reloads on SIGUSR1, for which the runtime would
 * otherwise open its debugger. Until here, the launchers' flags keep the debugger closed (docs/decisions/sigusr1.md).
 */

process.on('SIGUSR1', () => undefined);
// Signal listeners do not keep a process alive, so other commands are unaffected.

// By default, these signals end any process except process 1 in a container, which has to exit explicitly until the
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

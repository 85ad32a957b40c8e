/**
 * Takes SIGUSR1 away from the runtime, which would open its debugger, before anything else is loaded; `serve` reloads on it.
 * (The runtime's own switch for this blocks the signal altogether: docs/decisions/sigusr1.md.)
 */

process.on('SIGUSR1', () => undefined);
// Listening for a signal keeps no process alive, so the other verbs are not affected.

/** The entry point. Everything else is loaded dynamically, so that old runtimes still print a readable error. */
import './signals.ts';

/** `engines` in package.json. */
const NEEDED = 24;
/** The number of threads that the runtime starts for files, names and cryptography. */
const RUNTIME_THREADS = 4;
/** Plugins that answer probes, with their default ports. */
const PROBED = new Map([
  ['health', 8080],
  ['ready', 8181],
]);

if (Number(process.versions.node.split('.')[0]) >= NEEDED) {
  const { splitVerb, startsServer } = await import('./verb-names.ts');
  const words = process.argv.slice(2);
  const serving = startsServer(words);
  const { verb, own } = splitVerb(words);
  const opened =
    serving && verb === 'serve'
      ? (await import('../../server/engine/contract/early-http.ts')).openEarly(own, PROBED)
      : null;
  if (serving) (await import('../../server/engine/control/spare-thread.ts')).startSpareThread();
  await opened;
  const room = serving
    ? (await import('../../server/runtime/cpu-limit.ts')).threadRoom()
    : Infinity;
  // A runtime that cannot start its own threads exits silently.
  if (room < RUNTIME_THREADS) {
    process.stderr.write(
      `ndots: only ${room} of the ${RUNTIME_THREADS} needed threads can start: raise the container’s limit (kubelet’s podPidsLimit, --pids-limit, TasksMax=).\n`,
    );
    process.exit(1);
  }
  await import('./run.ts');
} else {
  process.stderr.write(
    `ndots needs Node ${NEEDED} or later, but ${process.execPath} is ${process.version}; put a newer one first in PATH.\n`,
  );
  process.exitCode = 2;
}

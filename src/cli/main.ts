/**
 * Where the program begins: everything else is loaded from here, so that a runtime that cannot even
 * read it says so in a sentence.
 */
import './signals.ts';

/** `engines` of package.json. */
const NEEDED = 24;
/** Threads that the runtime starts for files, names and cryptography. */
const RUNTIME_THREADS = 4;

if (Number(process.versions.node.split('.')[0]) >= NEEDED) {
  const { startsServer } = await import('./verb-names.ts');
  const serving = startsServer(process.argv.slice(2));
  if (serving) (await import('../server/control/spare-thread.ts')).startSpareThread();
  const room = serving ? (await import('../linux/processor-limit.ts')).threadRoom() : Infinity;
  // Without its own threads the runtime ends without a word.
  if (room < RUNTIME_THREADS) {
    process.stderr.write(
      `ndots: only ${room} more threads may be started, of ${RUNTIME_THREADS} that are needed: raise the limit of the container (podPidsLimit of the kubelet, --pids-limit, TasksMax=).\n`,
    );
    process.exit(1);
  }
  await import('./run.ts');
} else {
  process.stderr.write(
    `ndots needs Node ${NEEDED} or later, and ${process.execPath} is ${process.version}: put a newer one first in PATH.\n`,
  );
  process.exitCode = 2;
}

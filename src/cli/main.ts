/**
 * Where the program begins: everything else is loaded from here, so that a runtime that cannot even read it says so in a
 * sentence.
 */
import './signals.ts';

/** `engines` of package.json. */
const NEEDED = 24;

if (Number(process.versions.node.split('.')[0]) >= NEEDED) await import('./run.ts');
else {
  process.stderr.write(
    `ndots needs Node ${NEEDED} or later, and ${process.execPath} is ${process.version}: put a newer one first in PATH.\n`,
  );
  process.exitCode = 2;
}

/**
 * Where the program begins: everything else is loaded from here, so that a runtime that cannot even read it says so in a
 * sentence.
 */
import './signals.ts';

/** `engines` of package.json. */
const NEEDED = 24;

/** What serves, by verb or by CoreDNS's own flags, without being asked for something else. */
function serves([verb = '', ...rest]: readonly string[]): boolean {
  const serving = verb === 'serve' || verb === 'node-cache' || verb.startsWith('-');
  return serving && ![verb, ...rest].some((word) => /^--?(?:h|help|version|plugins)$/.test(word));
}

if (Number(process.versions.node.split('.')[0]) >= NEEDED) {
  if (serves(process.argv.slice(2)))
    (await import('../server/control/spare-thread.ts')).startSpareThread();
  await import('./run.ts');
} else {
  process.stderr.write(
    `ndots needs Node ${NEEDED} or later, and ${process.execPath} is ${process.version}: put a newer one first in PATH.\n`,
  );
  process.exitCode = 2;
}

/**
 * Every CoreDNS property with its example, started by both CoreDNS and ndots. Properties that docs/coredns-plugins.md
 * lists as served must start here, and the others must be refused with a reason. `COREDNS=PROGRAM` selects CoreDNS;
 * otherwise, only ndots is started.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { directives, type Property } from '../../tools/coredns/properties.ts';
import { tableRows } from '../../tools/coredns-table.ts';
import { keyName, writeExampleFiles } from '../kit/beside/example-files.ts';
import { start, type Child } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-properties-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** Returns whether the program serves this Corefile, and its output. */
async function tried(
  program: readonly string[],
  property: Property,
): Promise<{ readonly serves: boolean; readonly output: string }> {
  const [port, http] = await freePorts(2);
  const own = mkdtempSync(join(directory, 'run-'));
  for (const name of ['db.example.org', `${keyName}.key`, `${keyName}.private`])
    cpSync(join(directory, name), join(own, name));
  const key = (property.key ?? 'example.org:PORT').replaceAll('PORT', String(port));
  const lines = property.example
    .replaceAll('@/', `${directory}/`)
    .replaceAll(/ @$/gm, ` ${own}`)
    .replaceAll('HTTP', String(http));
  const binds = lines.startsWith('bind') ? '' : ' bind 127.0.0.1\n';
  const corefile = join(own, 'Corefile');
  writeFileSync(corefile, `${key} {\n${binds} ${lines.replaceAll('\n', '\n ')}\n}\n`);
  const child = start('server', [...program, '-conf', corefile]);
  try {
    return { serves: await settled(child), output: child.output() };
  } finally {
    child.signal('SIGKILL');
    await child.exitCode;
  }
}

/** Waits until the program prints its name, which means that it is serving, or exits. */
async function settled(child: Child): Promise<boolean> {
  let ended = false;
  void child.exitCode.then(() => {
    ended = true;
  });
  for (const limit = Date.now() + 60_000; Date.now() < limit;) {
    if (/CoreDNS-\d|ndots-\d/.test(child.output())) return true;
    if (ended) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`neither serves nor ends: ${child.output()}`);
}

const coredns = process.env['COREDNS'];
const ndots = [join(import.meta.dirname, '../../bin/ndots'), 'serve'];
writeExampleFiles(directory);
const verdicts = new Map(
  (await tableRows()).map((row) => [`${row.directive} ${row.property}`, row.verdict]),
);

describe('properties of CoreDNS', { concurrency: 2 }, () => {
  for (const { name, properties } of directives) {
    for (const property of properties) {
      const label = `${name} ${property.name}`.trim();
      test(label, async () => {
        if (coredns !== undefined && property.elsewhere !== true) {
          const { serves, output } = await tried([coredns], property);
          assert.ok(serves, `CoreDNS does not start: ${output}`);
        }
        const { serves, output } = await tried(ndots, property);
        const verdict = verdicts.get(`${name} ${property.name}`)!;
        assert.equal(serves, verdict !== 'not supported', `${verdict}: ${output}`);
        if (!serves) assert.match(output, /plugin\/|Unknown directive|not served|is not supported/);
      });
    }
  }
});

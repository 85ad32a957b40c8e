import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { describe, test } from 'node:test';

import { interfaceAddresses } from './interfaces.ts';
import { batchedUdp } from './packet-loop.ts';

const found = batchedUdp();
const skip = found.available ? false : found.reason;

/** Runs a program in its own network namespace after these `ip` commands. */
function inNamespace(commands: readonly string[], program: string): string | null {
  const shell = [...commands.map((command) => `ip ${command}`), `exec "$0" "$@"`].join(' && ');
  const words = ['--net', 'sh', '-c', shell, process.execPath];
  const options = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program];
  try {
    return execFileSync('unshare', [...words, ...options], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string };
    if (/Operation not permitted|not found|ENOENT/.test(`${stderr}${String(error)}`)) return null;
    throw error;
  }
}

describe('interfaces', { skip }, () => {
  test('interfaces known to the runtime have the same addresses', () => {
    const all = interfaceAddresses();
    for (const [name, list] of Object.entries(networkInterfaces())) {
      const expected = list!.map(({ address, scopeid }) =>
        scopeid ? `${address}%${name}` : address,
      );
      assert.deepEqual([...all.get(name)!].sort(), expected.sort());
    }
  });

  test('so do interfaces that are down or have no carrier, which the runtime omits', (t) => {
    const printed = inNamespace(
      [
        'link set lo up',
        'link add down0 type veth peer name bare0',
        'addr add 169.254.20.10/32 dev down0',
        'addr add 10.96.0.10/32 dev down0',
      ],
      `import { interfaceAddresses } from ${JSON.stringify(import.meta.resolve('./interfaces.ts'))};
       import { networkInterfaces } from 'node:os';
       const all = interfaceAddresses();
       console.log(JSON.stringify([all.get('down0'), all.get('bare0'), 'down0' in networkInterfaces()]));`,
    );
    if (printed === null) return t.skip('needs network namespaces');
    assert.deepEqual(JSON.parse(printed), [['169.254.20.10', '10.96.0.10'], [], false]);
  });
});

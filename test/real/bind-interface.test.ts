import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

const program = join(import.meta.dirname, '../../bin/ndots');

/**
 * Serves this Corefile in a separate network namespace and returns the output of `commands`. The interface
 * `nodelocaldns` in it is down, as NodeLocal DNSCache leaves it.
 * @returns null if namespaces are not available
 */
function served(t: TestContext, directives: string, commands: string): string | null {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-bind-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const corefile = join(directory, 'Corefile');
  writeFileSync(corefile, `.:53 {\n${directives}\n whoami\n}\n`);
  const script = `
    ip link set lo up
    ip link add nodelocaldns type veth peer name bare0 || exit 77
    ip addr add 169.254.20.10/32 dev nodelocaldns
    "$0" serve -conf ${corefile} > ${directory}/log 2>&1 &
    server=$!
    for i in $(seq 100); do grep -q '^ndots-' ${directory}/log && break; kill -0 $server 2>/dev/null || break; sleep 0.1; done
    ${commands}
    cat ${directory}/log
    kill $server 2>/dev/null
    wait $server
    exit 0`;
  try {
    return execFileSync('unshare', ['--net', 'sh', '-c', script, program], { encoding: 'utf8' });
  } catch (error) {
    t.skip(`needs network namespaces and veth: ${String(error).split('\n')[0]}`);
    return null;
  }
}

const ask = (address: string): string =>
  `dig @${address} +short +time=1 +tries=2 +noedns a.example SOA >/dev/null && echo "${address} answers";`;

describe('bind to an interface', () => {
  test('without carrier, serves only its own addresses', (t) => {
    const printed = served(t, ' bind nodelocaldns', `${ask('169.254.20.10')} ${ask('127.0.0.1')}`);
    if (printed === null) return;
    assert.match(printed, /^169\.254\.20\.10 answers/m);
    assert.doesNotMatch(printed, /^127\.0\.0\.1 answers/m);
    assert.match(printed, /^\.:53 on 169\.254\.20\.10$/m);
  });

  test('that has no address is refused rather than served everywhere', (t) => {
    const printed = served(t, ' bind bare0', ask('127.0.0.1'));
    if (printed === null) return;
    assert.doesNotMatch(printed, /answers/);
    assert.match(printed, /plugin\/bind: bare0 has no address/);
    assert.match(printed, /Corefile:1/);
  });

  test('if misspelled, lists the existing ones, down or not, and is the only problem', (t) => {
    const printed = served(t, ' bind nodelocaldn\n}\n.:53 {\n bind 127.0.0.1', 'true');
    if (printed === null) return;
    assert.match(printed, /not a valid IP address or interface name: 'nodelocaldn'/);
    assert.match(printed, /Did you mean 'nodelocaldns'\? Interfaces of this machine: lo, .*bare0/);
    assert.doesNotMatch(printed, /overlap|already defined/);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Kind } from '../../../tools/capture/fingerprint/asking-classes.ts';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { doctor } from './doctor.ts';

const directory = new URL('../../../../test/captures/clients/', import.meta.url);

/** The resolver that doctor reports for the only client in a capture made with real programs. */
async function resolverIn(file: string): Promise<{
  readonly kinds: readonly Kind[];
  readonly confidence: number;
  readonly why?: string;
}> {
  const { pathname } = new URL(`${file}.pcap.gz`, directory);
  const { out } = await runCommand(doctor, [pathname, '-o', 'json', '--fail-on', 'never'], {});
  const { clients } = JSON.parse(out) as {
    clients: readonly { resolver: Awaited<ReturnType<typeof resolverIn>> }[];
  };
  assert.equal(clients.length, 1, file);
  return clients[0]!.resolver;
}

describe('clients in captures of real programs', () => {
  const one: Readonly<Partial<Record<Kind, readonly string[]>>> = {
    tool: [
      ...['dig', 'dig-search', 'dig-two-questions', 'dig-one-name'],
      ...['delv', 'host', 'nslookup'],
    ],
    forwarder: [
      ...['dnsmasq', 'dnsmasq-many', 'coredns', 'coredns-cache', 'coredns-many'],
      ...['unbound', 'named', 'named-many', 'dnsdist', 'dnsdist-many'],
    ],
    glibc: ['glibc'],
    'c-ares': ['c-ares'],
    go: ['go'],
    musl: ['musl'],
  };
  for (const [kind, files] of Object.entries(one))
    for (const file of files)
      test(`${file} is recognised as ${kind}`, async () => {
        const { kinds, confidence } = await resolverIn(file);
        assert.deepEqual(kinds, [kind]);
        assert.ok(confidence >= 0.7, `${confidence}`);
      });

  const several: Readonly<Record<string, readonly Kind[]>> = {
    'glibc-and-c-ares': ['glibc', 'c-ares'],
    'glibc-and-go': ['glibc', 'go'],
    'glibc-and-musl': ['glibc', 'musl'],
    'go-and-musl': ['go', 'musl'],
    'glibc-and-dig': ['glibc', 'tool'],
  };
  for (const [file, programs] of Object.entries(several))
    test(`${file} behind one address are several programs, not one resolver`, async () => {
      const { kinds, why = '' } = await resolverIn(file);
      assert.deepEqual(kinds, []);
      assert.match(why, /^several programs/);
      for (const program of programs) assert.ok(why.includes(program), why);
    });

  test('four programs behind one address are not one resolver', async () => {
    const { kinds, confidence, why } = await resolverIn('glibc-musl-go-c-ares');
    assert.deepEqual([kinds, confidence], [[], null]);
    assert.match(why ?? '', /several/);
  });
});

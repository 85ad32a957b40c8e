import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { RCODE, TYPE } from '../../src/server/wire/iana.ts';
import type { DnsRecord, Message } from '../../src/server/wire/message.ts';
import { printData } from '../../src/server/wire/print.ts';
import { Asker } from '../kit/ask.ts';
import { corednsPath, etcdPrograms, startCoredns, startEtcd } from '../kit/etcd.ts';
import { serveProcess } from '../kit/serve-process.ts';

/**
 * CoreDNS and ndots on the same etcd receive the same questions. Keys and values are random, and names may or may not
 * exist. Intended differences are listed both here, with one rule each, and on the plugin's page.
 */
const [program] = etcdPrograms();
const coredns = corednsPath();
const skip =
  program === undefined
    ? 'etcd is not installed (etcd-server, or ETCD=FILE)'
    : coredns === null
      ? 'CoreDNS is not there (coredns on PATH, or COREDNS=FILE)'
      : false;

const ZONE = 'skydns.test.';
const types = ['A', 'AAAA', 'TXT', 'SRV', 'MX', 'CNAME', 'PTR', 'NS', 'SOA', 'HINFO'] as const;
const labels = ['a', 'b', 'c', 'web', 'x1', 'ns', 'dns', 'apex', '_http', 'UP'] as const;
const rounds = Number(process.env['ETCD_ROUNDS'] ?? 4);

describe('etcd compared with CoreDNS', { skip }, () => {
  test('the same answers for random keys, values and names', { timeout: 300_000 }, async (t) => {
    const etcd = await startEtcd(program!.path);
    t.after(() => etcd.stop());
    const directives = `
      hosts {
        192.0.2.7 a.ext.test
        2001:db8::7 a.ext.test
        192.0.2.8 b.ext.test
        fallthrough
      }
      etcd skydns.test 10.in-addr.arpa {
        endpoint ${etcd.endpoint}
      }`;
    const peer = await startCoredns(
      coredns!,
      (port) => `.:${port} {\nbind 127.0.0.1\n${directives}\n}\n`,
    );
    t.after(() => peer.stop());
    // Over UDP, CoreDNS sends as much data as the client accepts.
    const whole = `bufsize 4096\n${directives}`;
    const own = await serveProcess(whole);
    t.after(() => own.stop());
    const perQuery = await serveProcess(whole.replace(/\}\s*$/, 'per_query\n}'));
    t.after(() => perQuery.stop());
    const askers = await Promise.all([
      Asker.to(peer.port),
      Asker.to(own.port),
      Asker.to(perQuery.port),
    ]);
    t.after(() => askers.forEach((asker) => asker.close()));

    let compared = 0;
    let withData = 0;
    const found: string[] = [];
    for (let round = 0; round < rounds && found.length === 0; round++) {
      const random = seededRandom(1000 + round);
      const pick = <T>(list: readonly T[]): T => list[random.integer(list.length)]!;
      const name = (most: number): string[] =>
        Array.from({ length: 1 + random.integer(most) }, () => pick(labels));
      const keys = new Set<string>();
      await etcd.deleteAll();
      for (let i = 0; i < 30; i++) keys.add(['test', 'skydns', ...name(4)].join('/'));
      for (let i = 0; i < 5; i++) keys.add(`arpa/in-addr/10/0/0/${random.integer(5)}`);
      if (random.integer(2) === 0) keys.add('test/skydns');
      if (random.integer(4) === 0) keys.add('test/skydns/');
      const dump: string[] = [];
      for (const key of keys) {
        const value = serviceAt(random, pick, name);
        dump.push(`/skydns/${key} ${JSON.stringify(value)}`);
        await etcd.put(`/skydns/${key}`, value);
      }
      // The last key to be written. Once it is there, so are all others.
      await etcd.put('/skydns/test/skydns/zz-last', { host: `10.99.0.${round}` });
      for (let tries = 0; tries < 100; tries++) {
        const { answer } = await askers[1].ask(`zz-last.${ZONE}`, 'A');
        if (answer.length === 1 && printData(1, answer[0]!.data) === `10.99.0.${round}`) break;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const names = new Set<string>([
        'skydns.test.',
        'zz-last.skydns.test.',
        '0.0.0.10.in-addr.arpa.',
      ]);
      for (const key of keys) {
        const path = key.split('/').filter((part) => part !== '');
        for (let depth = 2; depth <= path.length; depth++)
          names.add(`${path.slice(0, depth).toReversed().join('.')}.`);
      }
      for (let i = 0; i < 15; i++) names.add(`${name(4).join('.')}.${ZONE}`);
      for (let i = 0; i < 15; i++) {
        const wild = name(3);
        wild[random.integer(wild.length)] = pick(['*', 'any']);
        names.add(`${wild.join('.')}.${ZONE}`);
      }
      for (const one of names) {
        await Promise.all(
          types.map(async (type) => {
            const [theirs, ours, read] = await Promise.all(
              askers.map((asker) => asker.ask(one, type)),
            );
            compared += 2;
            if (theirs!.answer.length > 0) withData += 2;
            for (const [what, mine] of [
              ['', ours!],
              ['per_query: ', read!],
            ] as const) {
              const difference = differ(one, type, theirs!, mine);
              if (difference !== null)
                found.push(`${what}${one} ${type}: ${difference}\n${dump.join('\n')}`);
            }
          }),
        );
      }
    }
    t.diagnostic(`${compared} answers compared, ${withData} of them with data`);
    assert.deepEqual(found.slice(0, 3), []);
    assert.ok(withData > 1000, `${withData} of ${compared} had data`);
  });
});

type Pick = <T>(list: readonly T[]) => T;

function serviceAt(
  random: ReturnType<typeof seededRandom>,
  pick: Pick,
  name: (most: number) => string[],
): object {
  const service: Record<string, unknown> = {};
  const kind = random.integer(10);
  if (kind < 3) service['host'] = `10.0.0.${random.integer(4)}`;
  else if (kind < 5) service['host'] = `2001:db8::${random.integer(4)}`;
  else if (kind < 8) service['host'] = `${name(3).join('.')}.skydns.test`;
  else if (kind < 9) service['host'] = pick(['a.ext.test', 'b.ext.test.', 'nope.ext.test']);
  // CoreDNS also ignores a host name next to a text.
  if (kind === 9 || (kind < 5 && random.integer(6) === 0))
    service['text'] = pick(['one', 'two words', 'x'.repeat(300), 'é']);
  if (random.integer(3) === 0) service['port'] = 1 + random.integer(9000);
  if (random.integer(3) === 0) service['priority'] = random.integer(30);
  if (random.integer(3) === 0) service['weight'] = random.integer(200);
  if (random.integer(3) === 0) service['ttl'] = random.integer(4000);
  if (random.integer(4) === 0) service['mail'] = true;
  if (random.integer(5) === 0) service['targetstrip'] = random.integer(4);
  if (random.integer(3) === 0) service['group'] = pick(['g1', 'g2']);
  return service;
}

/** Null: equal. */
function differ(name: string, type: string, theirs: Message, ours: Message): string | null {
  const exists = ours.rcode === RCODE.NOERROR && ours.answer.length === 0;
  // A zone has only one SOA record, which is at its apex.
  if (type === 'SOA' && !['skydns.test.', '10.in-addr.arpa.'].includes(name))
    return ours.answer.length === 0 ? null : 'SOA away from the apex';
  // A name's existence does not depend on the type. The apex always exists.
  if (theirs.rcode === RCODE.NXDOMAIN && exists) {
    if (['CNAME', 'PTR'].includes(type) || ['skydns.test.', '10.in-addr.arpa.'].includes(name))
      return null;
  }
  // A name server may have a name.
  if (type === 'NS' && theirs.rcode === RCODE.SERVFAIL) return null;
  if (theirs.rcode !== ours.rcode) return `rcode ${theirs.rcode}, ours ${ours.rcode}`;
  if (theirs.flags !== ours.flags) return `flags ${theirs.flags}, ours ${ours.flags}`;
  const answer = sectionDiffers(theirs.answer, ours.answer);
  if (answer !== null) return `answer ${answer}`;
  const authority = sectionDiffers(theirs.authority, ours.authority);
  if (authority !== null) return `authority ${authority}`;
  // A mail server's address is found under the mail server's own name, not under one without `targetstrip`.
  if (type === 'MX') {
    const [a, b] = [theirs, ours].map(({ additional }) =>
      levelled(additional).map((one) => shown(one, false)),
    );
    return JSON.stringify(a!.toSorted()) === JSON.stringify(b!.toSorted())
      ? null
      : `additional ${JSON.stringify(a)}, ours ${JSON.stringify(b)}`;
  }
  const additional = sectionDiffers(theirs.additional, ours.additional);
  return additional === null ? null : `additional ${additional}`;
}

function sectionDiffers(theirs: readonly DnsRecord[], ours: readonly DnsRecord[]): string | null {
  const [a, b] = [levelled(theirs), ours].map((list) => list.map((one) => shown(one, true)));
  return JSON.stringify(a) === JSON.stringify(b)
    ? null
    : `${JSON.stringify(a)}, ours ${JSON.stringify(b)}`;
}

/** Gives all records with the same name and type the lowest TTL, as ndots does (RFC 2181, section 5.2). */
function levelled(records: readonly DnsRecord[]): readonly DnsRecord[] {
  const key = ({ name, type }: DnsRecord): string => `${name} ${type}`;
  const least = new Map<string, number>();
  for (const each of records)
    least.set(key(each), Math.min(each.ttl, least.get(key(each)) ?? Infinity));
  return records.map((each) => ({ ...each, ttl: least.get(key(each))! }));
}

function shown({ name, type, ttl, data }: DnsRecord, owner: boolean): string {
  const text = printData(type, data);
  // Serials are derived from times.
  const rest = type === TYPE.SOA ? text.replace(/ \d+ /, ' SERIAL ') : text;
  return `${owner ? name : ''} ${type} ${ttl} ${rest}`;
}

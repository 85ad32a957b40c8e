import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import type { Message } from '../../src/server/wire/message.ts';
import { printData } from '../../src/server/wire/print.ts';
import { Asker } from '../kit/ask.ts';
import { missing } from '../kit/dig.ts';
import { etcdPrograms, startEtcd, type EtcdOptions, type EtcdProcess } from '../kit/etcd.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

/** Tests the plugin with every installed version of etcd: data appears, changes, breaks and returns. */

const programs = etcdPrograms();
const noEtcdctl = missing('etcdctl') ?? false;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

if (programs.length === 0)
  test('etcd', { skip: 'etcd is not installed (etcd-server, or ETCD=FILE)' });

interface Stand {
  readonly etcd: EtcdProcess;
  readonly server: ServeProcess;
  readonly asker: Asker;
}

type Life = Pick<TestContext, 'after'>;

async function stand(t: Life, path: string, more = '', options: EtcdOptions = {}): Promise<Stand> {
  const etcd = await startEtcd(path, options);
  t.after(() => etcd.stop());
  return { etcd, ...(await serving(t, `endpoint ${etcd.endpoint}\n${more}`)) };
}

async function serving(t: Life, properties: string): Promise<Omit<Stand, 'etcd'>> {
  const server = await serveProcess(`etcd skydns.test 10.in-addr.arpa {\n${properties}\n}`);
  t.after(() => server.stop());
  const asker = await Asker.to(server.port);
  t.after(() => asker.close());
  return { server, asker };
}

const data = ({ answer }: Message): string[] =>
  answer.map((record) => printData(record.type, record.data));

/** Repeats the query until this is the answer. */
async function until(asker: Asker, name: string, wanted: readonly string[]): Promise<void> {
  const end = performance.now() + 60_000;
  for (;;) {
    const found = data(await asker.ask(name, 'A'));
    if (JSON.stringify(found) === JSON.stringify(wanted)) return;
    if (performance.now() > end) assert.deepEqual(found, wanted, name);
    await pause(1);
  }
}

for (const { path, version } of programs) {
  describe(`etcd ${version}`, () => {
    describe('that is fixed', () => {
      let it: Stand;
      const ends: (() => unknown)[] = [];
      before(async () => {
        const life: Life = { after: (end) => void ends.push(end as () => unknown) };
        it = await stand(life, path, 'max_value 1KiB');
      });
      after(async () => {
        for (const end of ends.toReversed()) await end();
      });

      test('each event becomes an answer', async () => {
        for (let i = 1; i <= 20; i++) {
          await it.etcd.put('/skydns/test/skydns/event', { host: `10.0.0.${i}` });
          await until(it.asker, 'event.skydns.test.', [`10.0.0.${i}`]);
        }
      });

      test('a key that is deleted is NXDOMAIN', async () => {
        await it.etcd.put('/skydns/test/skydns/gone', { host: '10.0.0.1' });
        await until(it.asker, 'gone.skydns.test.', ['10.0.0.1']);
        await it.etcd.client.delete({ key: Buffer.from('/skydns/test/skydns/gone'), end: null });
        await until(it.asker, 'gone.skydns.test.', []);
        assert.equal((await it.asker.ask('gone.skydns.test.', 'A')).rcode, 3);
      });

      test('values that are not records are skipped and counted, and their names exist', async () => {
        const bad = {
          json: ['{"host":', '[]', '{"port":"80"}', '{"ttl":-1}'],
          host: ['{"host":"a..b"}'],
          size: [JSON.stringify({ text: 'x'.repeat(2000) })],
        };
        let count = 0;
        for (const value of Object.values(bad).flat())
          await it.etcd.put(`/skydns/test/skydns/bad/x${count++}`, value);
        await it.etcd.put(`/skydns/test/skydns/bad/${'y'.repeat(64)}`, { host: '10.0.0.1' });
        await it.etcd.put('/skydns/test/skydns/bad/good', { host: '10.0.0.7' });
        await until(it.asker, 'bad.skydns.test.', ['10.0.0.7']);
        for (const [reason, values] of Object.entries({ ...bad, name: [1] }))
          assert.equal(
            await it.server.sum('ndots_etcd_skipped_keys', `"${reason}"`),
            values.length,
          );
        const { rcode, answer } = await it.asker.ask('x1.bad.skydns.test.', 'A');
        assert.deepEqual([rcode, answer.length], [0, 0]);
        assert.equal(it.server.child.output().match(/x0" is ignored/g)?.length, 1);
      });

      test('the TTL of a record is the remaining time of its lease, within the limits, and its own at most', async () => {
        const { etcd, asker } = it;
        const long = await etcd.client.grantLease(100);
        const short = await etcd.client.grantLease(10);
        await etcd.put('/skydns/test/skydns/lease/a', { host: '10.1.0.1' }, long.id);
        await etcd.put('/skydns/test/skydns/lease/b', { host: '10.1.0.2', ttl: 60 }, long.id);
        await etcd.put('/skydns/test/skydns/lease/c', { host: '10.1.0.3' }, short.id);
        await until(asker, 'lease.skydns.test.', ['10.1.0.1', '10.1.0.2', '10.1.0.3']);
        for (let tries = 0; tries < 100; tries++) {
          const { answer } = await asker.ask('a.lease.skydns.test.', 'A');
          if (answer[0]!.ttl > 30) break;
          await pause(20);
        }
        const ttlsOf = async (name: string): Promise<readonly number[]> =>
          (await asker.ask(`${name}lease.skydns.test.`, 'A')).answer.map(({ ttl }) => ttl);
        const [first = 0] = await ttlsOf('a.');
        assert.ok(first >= 90 && first <= 100, `${first}`);
        assert.deepEqual(await ttlsOf('b.'), [60]);
        assert.deepEqual(await ttlsOf('c.'), [30]);
        // All records with the same name and type have the lowest TTL (RFC 2181, section 5.2).
        assert.deepEqual(await ttlsOf(''), [30, 30, 30]);
        await pause(1500);
        const [later = 0] = await ttlsOf('a.');
        assert.ok(later < first, `${later} after ${first}`);
      });

      test('an expired lease removes its records', async () => {
        const { id } = await it.etcd.client.grantLease(1);
        await it.etcd.put('/skydns/test/skydns/brief', { host: '10.0.0.1' }, id);
        await until(it.asker, 'brief.skydns.test.', ['10.0.0.1']);
        await until(it.asker, 'brief.skydns.test.', []);
      });

      test('a text of 900 bytes is answered whole, in strings of 255', async () => {
        await it.etcd.put('/skydns/test/skydns/big', { text: 'x'.repeat(900) });
        // Events arrive in order, so once the next key exists, so does the text.
        await it.etcd.put('/skydns/test/skydns/after', { host: '10.0.0.1' });
        await until(it.asker, 'after.skydns.test.', ['10.0.0.1']);
        const [text = ''] = data(await it.asker.ask('big.skydns.test.', 'TXT'));
        assert.deepEqual(
          text.split(' ').map((string) => string.length - 2),
          [255, 255, 255, 135],
        );
      });
    });

    test(
      'if it is killed under load, nothing is lost or wrong; once back, it is followed within 2 s',
      { timeout: 120_000 },
      async (t) => {
        const { etcd, asker, server } = await stand(t, path);
        const names = Array.from({ length: 200 }, (_, i) => i);
        for (const i of names) await etcd.put(`/skydns/test/skydns/n${i}`, { host: `10.0.1.${i}` });
        await until(asker, 'n199.skydns.test.', ['10.0.1.199']);
        let asked = 0;
        let running = true;
        const wrong: string[] = [];
        const load = Promise.all(
          names.slice(0, 20).map(async (offset) => {
            for (let i = offset; running; i = (i + 7) % 200) {
              const reply = await asker.ask(`n${i}.skydns.test.`, 'A');
              asked++;
              if (data(reply)[0] !== `10.0.1.${i}` || reply.rcode !== 0)
                wrong.push(`n${i}: ${reply.rcode} ${data(reply).join()}`);
            }
          }),
        );
        for (let round = 1; round <= 3; round++) {
          await pause(300);
          await etcd.kill();
          await pause(700);
          assert.equal(await server.sum('ndots_etcd_following'), 0);
          await etcd.restart();
          await etcd.put('/skydns/test/skydns/back', { host: `10.0.2.${round}` });
          await until(asker, 'back.skydns.test.', [`10.0.2.${round}`]);
        }
        running = false;
        await load;
        assert.deepEqual(wrong.slice(0, 3), []);
        assert.ok(asked > 1000);
        assert.equal(asker.repeats, 0);
        // The watch resumed where it had stopped.
        assert.equal(await server.sum('ndots_etcd_lists_total'), 1);
        t.diagnostic(`${asked} answers, none wrong`);
      },
    );

    test(
      'history compacted while etcd was away: listed again, deleted records disappear, the rest stays',
      { skip: noEtcdctl },
      async (t) => {
        const { etcd, asker, server } = await stand(t, path);
        await etcd.put('/skydns/test/skydns/stays', { host: '10.0.0.1' });
        await etcd.put('/skydns/test/skydns/goes', { host: '10.0.0.2' });
        await until(asker, 'goes.skydns.test.', ['10.0.0.2']);
        await etcd.kill();
        await etcd.elsewhere(async (client, endpoint) => {
          await client.delete({ key: Buffer.from('/skydns/test/skydns/goes'), end: null });
          const key = Buffer.from('/skydns/test/skydns/comes');
          for (let i = 0; i < 5; i++) await client.put(key, Buffer.from(`{"host":"10.0.3.${i}"}`));
          const { header } = await client.range({ key, end: null });
          execFileSync('etcdctl', ['--endpoints', endpoint, 'compact', `${header.revision}`], {
            env: { ...process.env, ETCDCTL_API: '3' },
          });
        });
        assert.deepEqual(data(await asker.ask('goes.skydns.test.', 'A')), ['10.0.0.2']);
        await etcd.restart();
        await until(asker, 'comes.skydns.test.', ['10.0.3.4']);
        await until(asker, 'goes.skydns.test.', []);
        assert.deepEqual(data(await asker.ask('stays.skydns.test.', 'A')), ['10.0.0.1']);
        assert.equal(await server.sum('ndots_etcd_lists_total', '"compacted"'), 1);
      },
    );

    test('another, empty etcd in its place: listed again and followed', async (t) => {
      const { etcd, asker, server } = await stand(t, path);
      for (let i = 0; i < 20; i++) await etcd.put('/skydns/test/skydns/old', { host: '10.0.0.1' });
      await until(asker, 'old.skydns.test.', ['10.0.0.1']);
      await etcd.kill();
      await etcd.restart({ empty: true });
      await etcd.put('/skydns/test/skydns/new', { host: '10.0.0.2' });
      await until(asker, 'new.skydns.test.', ['10.0.0.2']);
      await until(asker, 'old.skydns.test.', []);
      assert.equal(await server.sum('ndots_etcd_lists_total', '"restored"'), 1);
    });

    test(
      'a user that may only read the zone is followed; the token is renewed; a wrong password is reported',
      { skip: noEtcdctl },
      async (t) => {
        const etcd = await startEtcd(path, { words: ['--auth-token-ttl', '1'] });
        t.after(() => etcd.stop());
        await etcd.put('/skydns/test/skydns/a', { host: '10.0.0.1' });
        const ctl = (...words: string[]): string =>
          execFileSync('etcdctl', ['--endpoints', etcd.endpoint, ...words], {
            env: { ...process.env, ETCDCTL_API: '3' },
            encoding: 'utf8',
            stdio: ['ignore', 'pipe', 'pipe'],
          });
        ctl('user', 'add', 'root:root');
        ctl('user', 'grant-role', 'root', 'root');
        ctl('role', 'add', 'dns');
        ctl('role', 'grant-permission', 'dns', 'read', '/skydns/test/skydns/', '--prefix=true');
        ctl('role', 'grant-permission', 'dns', 'read', '/skydns/arpa/in-addr/10/', '--prefix=true');
        ctl('user', 'add', 'dns:secret');
        ctl('user', 'grant-role', 'dns', 'dns');
        ctl('auth', 'enable');
        const put = (host: string): string =>
          ctl('--user', 'root:root', 'put', '/skydns/test/skydns/a', JSON.stringify({ host }));
        const own = await serving(t, `endpoint ${etcd.endpoint}\ncredentials dns secret`);
        await until(own.asker, 'a.skydns.test.', ['10.0.0.1']);
        await pause(2500);
        put('10.0.0.2');
        await until(own.asker, 'a.skydns.test.', ['10.0.0.2']);
        await etcd.kill();
        // The first restart waits until its own queries are answered, but they are not permitted here.
        etcd.restart().catch(() => undefined);
        await pause(2000);
        for (let tries = 0; tries < 40; tries++) {
          try {
            put('10.0.0.3');
            break;
          } catch {
            await pause(250);
          }
        }
        await until(own.asker, 'a.skydns.test.', ['10.0.0.3']);
        const wrong = await serving(
          t,
          `endpoint ${etcd.endpoint}\ncredentials dns wrong\nstartup_timeout 1s`,
        );
        assert.match(
          wrong.server.child.output(),
          /authentication failed.*check user name and password/s,
        );
        assert.equal((await wrong.asker.ask('a.skydns.test.', 'A')).rcode, 2);
      },
    );

    test('TLS with certificates on both sides works; a certificate of another CA is reported', async (t) => {
      if (spawnSync('openssl', ['version']).status !== 0) return t.skip('openssl is not installed');
      const directory = mkdtempSync(join(tmpdir(), 'ndots-etcd-tls-'));
      t.after(() => rmSync(directory, { recursive: true, force: true }));
      const file = certificates(directory);
      const { asker, etcd } = await stand(
        t,
        path,
        `tls ${file('client.crt')} ${file('client.key')} ${file('ca.crt')}`,
        {
          tls: { cert: file('server.crt'), key: file('server.key'), ca: file('ca.crt') },
          access: {
            tls: {
              certificate: file('client.crt'),
              key: file('client.key'),
              authority: file('ca.crt'),
            },
          },
        },
      );
      await etcd.put('/skydns/test/skydns/a', { host: '10.0.0.1' });
      await until(asker, 'a.skydns.test.', ['10.0.0.1']);
      for (const [tls, text] of [
        [`tls ${file('other.crt')}`, /plugin\/etcd: .*(?:self.signed|unable to|certificate)/],
        [`tls ${file('ca.crt')}`, /plugin\/etcd: .*(?:certificate|alert)/i],
      ] as const) {
        const { server } = await serving(
          t,
          `endpoint ${etcd.endpoint}\n${tls}\nstartup_timeout 1s`,
        );
        assert.match(server.child.output(), text);
      }
      const missing = `tls ${file('client.crt')} ${file('missing.key')} ${file('ca.crt')}`;
      await assert.rejects(
        serving(t, `endpoint ${etcd.endpoint}\n${missing}`),
        /could not load TLS file .*missing\.key/,
      );
    });

    test(
      'three members: the queried one dies, the leader dies, and changes continue',
      { timeout: 120_000, skip: noEtcdctl },
      async (t) => {
        const members = await startCluster(t, path);
        const endpoints = members.map(({ endpoint }) => endpoint).join(' ');
        const { asker } = await serving(t, `endpoint http://127.0.0.1:1 ${endpoints}`);
        const put = async (host: string): Promise<void> => {
          for (let tries = 0; tries < 100; tries++) {
            const alive = members
              .filter(({ running }) => running())
              .map(({ endpoint }) => endpoint);
            const { status } = spawnSync(
              'etcdctl',
              [
                '--endpoints',
                alive.join(','),
                '--command-timeout',
                '1s',
                'put',
                '/skydns/test/skydns/a',
                JSON.stringify({ host }),
              ],
              { env: { ...process.env, ETCDCTL_API: '3' } },
            );
            if (status === 0) return;
            await pause(200);
          }
          throw new Error('nobody takes the key');
        };
        await put('10.0.0.1');
        await until(asker, 'a.skydns.test.', ['10.0.0.1']);
        // Stop one member after the other, including the queried one and the leader.
        for (const [index, member] of members.entries()) {
          await member.kill();
          await put(`10.0.1.${index}`);
          await until(asker, 'a.skydns.test.', [`10.0.1.${index}`]);
          member.start();
          await put(`10.0.2.${index}`);
          await until(asker, 'a.skydns.test.', [`10.0.2.${index}`]);
        }
      },
    );

    test('values that do not fit into one message together are listed a few at a time, and skipped', async (t) => {
      const etcd = await startEtcd(path);
      t.after(() => etcd.stop());
      const large = 'x'.repeat(1_400_000);
      for (let i = 0; i < 8; i++) await etcd.put(`/skydns/test/skydns/large/${i}`, large);
      await etcd.put('/skydns/test/skydns/small', { host: '10.0.0.1' });
      const { asker, server } = await serving(t, `endpoint ${etcd.endpoint}`);
      await until(asker, 'small.skydns.test.', ['10.0.0.1']);
      const skipped = (): Promise<number> => server.sum('ndots_etcd_skipped_keys', '"size"');
      assert.equal(await skipped(), 8);
      await etcd.put('/skydns/test/skydns/large/9', large);
      await etcd.put('/skydns/test/skydns/small', { host: '10.0.0.2' });
      await until(asker, 'small.skydns.test.', ['10.0.0.2']);
      // Metrics are rendered once a second.
      for (let tries = 0; tries < 100 && (await skipped()) === 8; tries++) await pause(50);
      assert.equal(await skipped(), 9);
    });

    test('per_query: no etcd, no answer; back, and answers are there', async (t) => {
      const { etcd, asker } = await stand(t, path, 'per_query');
      await etcd.put('/skydns/test/skydns/a', { host: '10.0.0.1' });
      assert.deepEqual(data(await asker.ask('a.skydns.test.', 'A')), ['10.0.0.1']);
      assert.equal((await asker.ask('b.skydns.test.', 'A')).rcode, 3);
      await etcd.kill();
      const { rcode, edns } = await asker.ask('a.skydns.test.', 'A');
      assert.equal(rcode, 2);
      assert.equal(edns?.options.find(({ code }) => code === 15)?.data[1], 23);
      await etcd.restart();
      await until(asker, 'a.skydns.test.', ['10.0.0.1']);
    });

    test('no etcd at the start: SERVFAIL with the error 14; answers once it is there', async (t) => {
      const etcd = await startEtcd(path);
      t.after(() => etcd.stop());
      await etcd.put('/skydns/test/skydns/a', { host: '10.0.0.1' });
      await etcd.kill();
      const { asker } = await serving(t, `endpoint ${etcd.endpoint}\nstartup_timeout 100ms`);
      const { rcode, edns } = await asker.ask('a.skydns.test.', 'A');
      assert.equal(rcode, 2);
      assert.equal(edns?.options.find(({ code }) => code === 15)?.data[1], 14);
      await etcd.restart();
      await until(asker, 'a.skydns.test.', ['10.0.0.1']);
    });
  });
}

/** A CA, its certificate for 127.0.0.1 as both server and client, and a certificate that it did not sign. */
function certificates(directory: string): (name: string) => string {
  const file = (name: string): string => join(directory, name);
  const openssl = (...words: string[]): void =>
    void execFileSync('openssl', words, { stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  for (const [name, subject] of [
    ['ca', '/CN=ca'],
    ['other', '/CN=other'],
  ] as const) {
    const out = ['-keyout', file(`${name}.key`), '-out', file(`${name}.crt`)];
    openssl('req', '-x509', ...key, ...out, '-subj', subject, '-days', '2');
  }
  for (const name of ['server', 'client']) {
    const san = ['-addext', 'subjectAltName=IP:127.0.0.1'];
    const ca = ['-CA', file('ca.crt'), '-CAkey', file('ca.key')];
    const out = ['-keyout', file(`${name}.key`), '-out', file(`${name}.crt`)];
    openssl('req', '-x509', ...key, ...out, ...ca, ...san, '-subj', `/CN=${name}`, '-days', '2');
  }
  return file;
}

interface Member {
  readonly endpoint: string;
  kill(): Promise<void>;
  start(): void;
  running(): boolean;
}

async function startCluster(t: Life, path: string): Promise<readonly Member[]> {
  const { start } = await import('../kit/child.ts');
  const ports = await freePorts(6);
  const peer = (i: number): string => `http://127.0.0.1:${ports[3 + i]}`;
  const cluster = [0, 1, 2].map((i) => `m${i}=${peer(i)}`).join(',');
  return [0, 1, 2].map((i) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-etcd-member-'));
    const endpoint = `http://127.0.0.1:${ports[i]}`;
    const run = () =>
      start(`m${i}`, [
        ...[path, '--name', `m${i}`, '--data-dir', directory, '--log-level', 'error'],
        ...['--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
        ...['--listen-peer-urls', peer(i), '--initial-advertise-peer-urls', peer(i)],
        ...[
          '--initial-cluster',
          cluster,
          '--heartbeat-interval',
          '50',
          '--election-timeout',
          '500',
        ],
      ]);
    let child = run();
    let alive = true;
    const kill = async (): Promise<void> => {
      alive = false;
      child.signal('SIGKILL');
      await child.exitCode;
    };
    t.after(async () => {
      await kill();
      rmSync(directory, { recursive: true, force: true });
    });
    return {
      endpoint,
      kill,
      running: () => alive,
      start() {
        child = run();
        alive = true;
      },
    };
  });
}

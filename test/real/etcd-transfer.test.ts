/** Transfers zones from a real etcd to real name servers through ndots. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { TYPE } from '../../src/server/wire/iana.ts';
import { readMessage } from '../../src/server/wire/message.ts';
import { printRecord } from '../../src/server/wire/print.ts';
import { etcdPrograms, startEtcd } from '../kit/etcd.ts';
import { freePorts } from '../kit/free-ports.ts';
import { startKnot, startNamed, startNsd, UdpClient } from '../kit/zone-servers.ts';
import { has, ndots, question, scratch } from '../kit/zone-transfers.ts';

const [etcdProgram] = etcdPrograms();
const noEtcd =
  etcdProgram === undefined ? 'etcd is not installed (etcd-server, or ETCD=FILE)' : false;

const secondaries = {
  BIND: {
    program: 'named',
    start: (directory: string, port: number, primary: number) =>
      startNamed(
        directory,
        port,
        `zone "shop.test" { type secondary; file "${directory}/copy"; primaries { 127.0.0.1 port ${primary}; }; };`,
      ),
  },
  Knot: {
    program: 'knotd',
    start: (directory: string, port: number, primary: number) =>
      startKnot(
        directory,
        port,
        { 'shop.test': join(directory, 'copy') },
        '    master: primary\n    acl: told\n',
        `remote:\n  - id: primary\n    address: 127.0.0.1@${primary}\nacl:\n  - id: told\n    address: 127.0.0.1\n    action: [notify, transfer]\n`,
      ),
  },
  NSD: {
    program: 'nsd',
    start: (directory: string, port: number, primary: number) =>
      startNsd(
        directory,
        port,
        { 'shop.test': join(directory, 'copy') },
        `  request-xfr: 127.0.0.1@${primary} NOKEY\n  allow-notify: 127.0.0.1 NOKEY\n`,
      ),
  },
} as const;

/** Waits up to 40 s until the condition holds. */
async function comes(is: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 40_000; !(await is()); await pause(200))
    assert.ok(Date.now() < end, 'it has not come');
}

/** The answer to a question, as sorted lines without TTLs. Empty if there is no answer yet. */
async function asked(port: number, name: string, type: number): Promise<string[]> {
  const client = new UdpClient(port);
  try {
    const reply = await client.ask(question(name, type));
    return readMessage(reply)
      .answer.map((record) =>
        printRecord(record)
          .replaceAll(/\s+/g, ' ')
          .replace(/ \d+ IN /, ' '),
      )
      .toSorted();
  } finally {
    client.close();
  }
}

describe('zones from etcd on other name servers', { skip: noEtcd }, () => {
  for (const [label, { program, start }] of Object.entries(secondaries)) {
    const skip = has(program) ? false : `needs ${program}`;
    test(
      `${label} has the data of etcd, and is notified of changes`,
      { skip, timeout: 120_000 },
      async (t) => {
        const directory = scratch(t);
        const etcd = await startEtcd(etcdProgram!.path);
        t.after(() => etcd.stop());
        await etcd.put('/skydns/test/shop/dns/ns/ns1', { host: '192.0.2.53' });
        await etcd.put('/skydns/test/shop/web/a1', { host: '10.0.0.1', port: 80 });
        await etcd.put('/skydns/test/shop/web/a2', { host: 'fd00::2', port: 80 });
        await etcd.put('/skydns/test/shop/www', { host: 'web.shop.test' });
        await etcd.put('/skydns/test/shop/mail/m', { host: '10.0.0.9', mail: true });
        await etcd.put('/skydns/test/shop/note', { text: 'hello' });
        const [port, otherPort] = await freePorts(2);
        await ndots(
          t,
          directory,
          `shop.test:${port} {\n bind 127.0.0.1\n etcd {\n endpoint ${etcd.endpoint}\n }\n transfer {\n to 127.0.0.1:${otherPort}\n }\n errors\n}`,
        );
        const { child } = await start(join(directory, 'other'), otherPort, port);
        t.after(async () => {
          child.signal('SIGKILL');
          await child.exitCode;
        });
        const questions: readonly (readonly [string, number])[] = [
          ['web.shop.test.', TYPE.A],
          ['web.shop.test.', TYPE.AAAA],
          ['a1.web.shop.test.', TYPE.A],
          ['web.shop.test.', TYPE.SRV],
          ['mail.shop.test.', TYPE.MX],
          ['note.shop.test.', TYPE.TXT],
          ['www.shop.test.', TYPE.A],
          ['shop.test.', TYPE.NS],
        ];
        await comes(async () => (await asked(otherPort, 'shop.test.', TYPE.NS)).length > 0);
        for (const [name, type] of questions) {
          const ours = await asked(port, name, type);
          assert.ok(ours.length > 0, name);
          assert.deepEqual(await asked(otherPort, name, type), ours, name);
        }
        await etcd.put('/skydns/test/shop/new', { host: '10.0.0.7' });
        await comes(async () => (await asked(otherPort, 'new.shop.test.', TYPE.A)).length === 1);
      },
    );
  }
});

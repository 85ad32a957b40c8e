import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { RCODE, TYPE } from '../../src/server/wire/iana.ts';
import { readMessage } from '../../src/server/wire/message.ts';
import { freePorts } from '../kit/free-ports.ts';
import { startNamed, UdpClient } from '../kit/zone-servers.ts';
import { has, ndots, question, says, scratch, until } from '../kit/zone-transfers.ts';

/** Zones in a BIND catalog. */

const skip = has('named') ? false : 'needs named';

test('zones of a catalog come, are answered, and go', { skip, timeout: 120_000 }, async (t) => {
  const directory = scratch(t);
  const [port, otherPort] = await freePorts(2);
  const file = (name: string): string => join(directory, `db.${name}`);
  const plain = (serial: number): string =>
    `$TTL 60\n@ SOA ns host ${serial} 60 1 3600 60\n@ NS ns\nns A 192.0.2.1\n`;
  const catalog = (serial: number, ...members: string[]): string =>
    `@ 0 SOA invalid. invalid. ${serial} 1 1 3600 0\n@ 0 NS invalid.\nversion 0 TXT "2"\n${members.map((name) => `${name.replaceAll('.', '-')}.zones 0 PTR ${name}.\n`).join('')}`;
  for (const name of ['example.org', 'example.net', 'other.test'])
    writeFileSync(file(name), plain(1));
  writeFileSync(file('catalog.test'), catalog(1, 'example.org', 'other.test'));
  const zones = ['example.org', 'example.net', 'other.test', 'catalog.test'].map(
    (name) =>
      `zone "${name}" { type primary; check-names ignore; file "${file(name)}"; notify explicit; also-notify { 127.0.0.1 port ${port}; }; notify-delay 0; };`,
  );
  const bind = await startNamed(join(directory, 'bind'), otherPort, zones.join('\n'));
  t.after(() => bind.child.stop());
  const output = await ndots(
    t,
    directory,
    `.:${port} {\n bind 127.0.0.1\n secondary catalog.test {\n transfer from 127.0.0.1:${otherPort}\n catalog example.org net\n }\n errors\n}`,
  );
  await until('ndots', port, 1, output);
  const rcode = async (name: string): Promise<number> => {
    const client = new UdpClient(port);
    const reply = readMessage(await client.ask(question(name, TYPE.SOA)));
    client.close();
    return reply.rcode;
  };
  assert.equal(await rcode('other.test.'), RCODE.REFUSED, 'it is not allowed');
  await says(output, /Skipped 1 member zones from catalog catalog\.test\./);

  writeFileSync(file('example.org'), plain(2));
  writeFileSync(file('catalog.test'), catalog(2, 'example.net'));
  bind.child.signal('SIGHUP');
  for (let tries = 0; tries < 200; tries++) {
    if ((await rcode('example.net.')) === 0 && (await rcode('example.org.')) !== 0) break;
    await pause(100);
  }
  assert.equal(await rcode('example.net.'), 0, output());
  assert.equal(await rcode('example.org.'), RCODE.REFUSED, output());
  await says(output, /Removed catalog member zone example\.org\. from catalog catalog\.test\./);

  writeFileSync(
    file('catalog.test'),
    catalog(3, 'example.org', 'example.net').replace('"2"', '"9"'),
  );
  bind.child.signal('SIGHUP');
  await says(output, /has unsupported version "9"/);
  assert.equal(await rcode('example.net.'), 0, 'a broken catalog leaves all as it was');
});

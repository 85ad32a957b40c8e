import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { TYPE } from '../../src/server/wire/iana.ts';
import { readMessage, writeMessage } from '../../src/server/wire/message.ts';
import { freePorts } from '../kit/free-ports.ts';
import {
  startKnot,
  startNamed,
  startNsd,
  UdpClient,
  type ZoneServer,
} from '../kit/zone-servers.ts';
import {
  has,
  ndots,
  question,
  says,
  scratch,
  serialAt,
  transferred,
  until,
} from '../kit/zone-transfers.ts';

/** Transfers zones between ndots and real name servers in both directions. */

const hosts = 3000;
const zoneText = (serial: number, more = '', first = 1): string =>
  `$TTL 300\n@ 3600 IN SOA ns host ${serial} 60 5 3600 60\n@ NS ns\n@ NS ns2.elsewhere.\nns A 192.0.2.1\n` +
  Array.from({ length: hosts + 1 - first }, (_, i) => `host${first + i} A 10.0.0.1\n`).join('') +
  `mail MX 10 host1\n_s._tcp SRV 1 2 53 host2\n` +
  `old DNAME new\ncut NS ns.cut\nns.cut A 192.0.2.2\n*.wild CNAME host1\ntext TXT "a b" c\n${more}`;

interface Other {
  readonly program: string;
  /** Runs ndots as a secondary of the server at `primary`. */
  secondary(directory: string, port: number, primary: number): Promise<ZoneServer>;
  /** Runs ndots as a primary of the server at `secondary`, with this file. */
  primary(directory: string, port: number, secondary: number, file: string): Promise<ZoneServer>;
}

const others: Readonly<Record<string, Other>> = {
  BIND: {
    program: 'named',
    secondary: (directory, port, primary) =>
      startNamed(
        directory,
        port,
        `zone "example.org" { type secondary; file "${directory}/copy"; primaries { 127.0.0.1 port ${primary}; }; };`,
      ),
    primary: (directory, port, secondary, file) =>
      startNamed(
        directory,
        port,
        `zone "example.org" { type primary; check-names ignore; file "${file}"; ixfr-from-differences yes; notify explicit; also-notify { 127.0.0.1 port ${secondary}; }; notify-delay 0; };`,
      ),
  },
  Knot: {
    program: 'knotd',
    secondary: (directory, port, primary) =>
      startKnot(
        directory,
        port,
        { 'example.org': join(directory, 'copy') },
        '    master: primary\n    acl: told\n',
        `remote:\n  - id: primary\n    address: 127.0.0.1@${primary}\nacl:\n  - id: told\n    address: 127.0.0.1\n    action: [notify, transfer]\n`,
      ),
    primary: (directory, port, secondary, file) =>
      startKnot(
        directory,
        port,
        { 'example.org': file },
        '    notify: other\n    acl: given\n    zonefile-load: difference\n    zonefile-sync: -1\n    journal-content: changes\n',
        `remote:\n  - id: other\n    address: 127.0.0.1@${secondary}\nacl:\n  - id: given\n    address: 127.0.0.1\n    action: transfer\n`,
      ),
  },
  NSD: {
    program: 'nsd',
    secondary: (directory, port, primary) =>
      startNsd(
        directory,
        port,
        { 'example.org': join(directory, 'copy') },
        `  request-xfr: 127.0.0.1@${primary} NOKEY\n  allow-notify: 127.0.0.1 NOKEY\n  provide-xfr: 127.0.0.1 NOKEY\n`,
      ),
    primary: (directory, port, secondary, file) =>
      startNsd(
        directory,
        port,
        { 'example.org': file },
        `  provide-xfr: 127.0.0.1 NOKEY\n  notify: 127.0.0.1@${secondary} NOKEY\n  store-ixfr: yes\n  create-ixfr: yes\n`,
      ),
  },
};

describe('zone transfers', () => {
  for (const [label, other] of Object.entries(others)) {
    const skip = has(other.program) ? false : `needs ${other.program}`;

    test(`${label} follows a zone of ours`, { skip, timeout: 120_000 }, async (t) => {
      const directory = scratch(t);
      const file = join(directory, 'db.example.org');
      writeFileSync(file, zoneText(1));
      const [port, otherPort] = await freePorts(2);
      const output = await ndots(
        t,
        directory,
        `example.org:${port} {\n bind 127.0.0.1\n file ${file} {\n reload 1s\n }\n transfer {\n to 127.0.0.1:${otherPort}\n }\n errors\n}`,
      );
      const server = await other.secondary(join(directory, 'other'), otherPort, port);
      t.after(() => server.child.stop());
      await until(label, otherPort, 1, () => output() + server.child.output());
      assert.deepEqual(await transferred(otherPort), await transferred(port));
      assert.ok((await transferred(port)).length > hosts);
      writeFileSync(file, zoneText(2, 'added A 192.0.2.77\n', 2));
      await until(label, otherPort, 2, () => output() + server.child.output());
      await says(output, /Outgoing incremental transfer of 6 records/);
      assert.deepEqual(await transferred(otherPort), await transferred(port));
    });

    test(`we follow a zone of ${label}`, { skip, timeout: 120_000 }, async (t) => {
      const directory = scratch(t);
      const file = join(directory, 'db.example.org');
      writeFileSync(file, zoneText(1));
      const [port, otherPort] = await freePorts(2);
      const server = await other.primary(join(directory, 'other'), otherPort, port, file);
      t.after(() => server.child.stop());
      const output = await ndots(
        t,
        directory,
        `example.org:${port} {\n bind 127.0.0.1\n secondary {\n transfer from 127.0.0.1:${otherPort}\n }\n transfer {\n to *\n }\n errors\n}`,
      );
      await until('ndots', port, 1, output);
      assert.deepEqual(await transferred(port), await transferred(otherPort));
      writeFileSync(file, zoneText(2, 'added A 192.0.2.77\n', 2));
      server.child.signal('SIGHUP');
      await until('ndots', port, 2, () => output() + server.child.output());
      await says(
        output,
        /Transferred: example\.org\. from \S+, \d+ records( of differences)?, 2 SOA serial/,
      );
      assert.deepEqual(await transferred(port), await transferred(otherPort));
    });
  }

  test(
    'a transfer that is cut short or garbled leaves the zone unchanged',
    { timeout: 60_000 },
    async (t) => {
      const directory = scratch(t);
      mkdirSync(join(directory, 'other'));
      const [port, badPort] = await freePorts(2);
      let serial = 1;
      let how: 'whole' | 'cut' | 'garbled' = 'whole';
      const soa = (): object => ({
        mname: '.',
        rname: '.',
        serial,
        refresh: 1,
        retry: 1,
        expire: 3600,
        minimum: 5,
      });
      const record = (name: string, type: number, data: object) => ({
        name,
        type,
        class: 1,
        ttl: 60,
        data,
      });
      const primary: Server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.on('data', (bytes: Buffer) => {
          const { id, question: asked } = readMessage(bytes.subarray(2));
          const answer = [record('example.org.', TYPE.SOA, soa())];
          if (asked[0]!.type !== TYPE.SOA) {
            answer.push(record('www.example.org.', TYPE.A, { address: `192.0.2.${serial}` }));
            if (how === 'whole') answer.push(record('example.org.', TYPE.SOA, soa()));
          }
          const reply = writeMessage({
            id,
            flags: 0x8400,
            rcode: 0,
            question: asked,
            answer,
            authority: [],
            additional: [],
            edns: null,
          });
          if (how === 'garbled' && asked[0]!.type !== TYPE.SOA) reply.fill(0xc0, 40);
          socket.write(Buffer.concat([Buffer.of(reply.length >> 8, reply.length & 0xff), reply]));
          if (how === 'cut' && asked[0]!.type !== TYPE.SOA) socket.end();
        });
      });
      await new Promise<void>((resolve) => void primary.listen(badPort, '127.0.0.1', resolve));
      t.after(() => primary.close());
      const output = await ndots(
        t,
        directory,
        `example.org:${port} {\n bind 127.0.0.1\n secondary {\n transfer from 127.0.0.1:${badPort}\n }\n errors\n}`,
      );
      await until('ndots', port, 1, output);
      for (const next of ['cut', 'garbled'] as const) {
        how = next;
        serial = 2;
        const before = output().split('Failed to transfer').length;
        const notify = question('example.org.', TYPE.SOA, false);
        notify[2] = 0x24;
        const client = new UdpClient(port);
        assert.equal(readMessage(await client.ask(notify)).rcode, 0);
        client.close();
        while (output().split('Failed to transfer').length === before) await pause(50);
        assert.equal(await serialAt(port), 1);
      }
      how = 'whole';
      await until('ndots', port, 2, output);
    },
  );
});

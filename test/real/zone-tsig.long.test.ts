import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { freePorts } from '../kit/free-ports.ts';
import { startKnot, startNamed, startNsd, type ZoneServer } from '../kit/zone-servers.ts';
import { has, ndots, says, scratch, serialAt, until } from '../kit/zone-transfers.ts';

/** Transfers zones with signatures between ndots and real name servers, in both directions. */

const name = 'key.example.';
const secret = Buffer.alloc(32, 9).toString('base64');
const hosts = 5000;
const zoneText = (serial: number): string =>
  `$TTL 300\n@ SOA ns host ${serial} 60 1 3600 60\n@ NS ns\nns A 192.0.2.1\n` +
  Array.from({ length: hosts }, (_, i) => `host${i} A 10.0.0.1\n`).join('');

const bindKey = `key "${name}" { algorithm hmac-sha256; secret "${secret}"; };\n`;
const nsdKey = `key:\n  name: ${name}\n  algorithm: hmac-sha256\n  secret: "${secret}"\n`;
const knotKey = `key:\n  - id: ${name}\n    algorithm: hmac-sha256\n    secret: ${secret}\n`;

interface Other {
  readonly program: string;
  /** Runs ndots as a secondary of the server at `primary`. */
  secondary(directory: string, port: number, primary: number): Promise<ZoneServer>;
  /** Runs ndots as a primary that transfers the zone in this file to those who have the key. */
  primary(directory: string, port: number, file: string): Promise<ZoneServer>;
}

const others: Readonly<Record<string, Other>> = {
  BIND: {
    program: 'named',
    secondary: (directory, port, primary) =>
      startNamed(
        directory,
        port,
        `${bindKey}zone "example.org" { type secondary; file "${directory}/copy"; primaries { 127.0.0.1 port ${primary} key "${name}"; }; };`,
      ),
    primary: (directory, port, file) =>
      startNamed(
        directory,
        port,
        `${bindKey}zone "example.org" { type primary; file "${file}"; allow-transfer { key "${name}"; }; };`,
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
        `${knotKey}remote:\n  - id: primary\n    address: 127.0.0.1@${primary}\n    key: ${name}\nacl:\n  - id: told\n    address: 127.0.0.1\n    action: notify\n`,
      ),
    primary: (directory, port, file) =>
      startKnot(
        directory,
        port,
        { 'example.org': file },
        '    acl: given\n',
        `${knotKey}acl:\n  - id: given\n    key: ${name}\n    action: transfer\n`,
      ),
  },
  NSD: {
    program: 'nsd',
    secondary: (directory, port, primary) =>
      startNsd(
        directory,
        port,
        { 'example.org': join(directory, 'copy') },
        `  request-xfr: 127.0.0.1@${primary} ${name}\n  allow-notify: 127.0.0.1 NOKEY\n`,
        nsdKey,
      ),
    primary: (directory, port, file) =>
      startNsd(
        directory,
        port,
        { 'example.org': file },
        `  provide-xfr: 127.0.0.1 ${name}\n`,
        nsdKey,
      ),
  },
};

describe('signed transfers', () => {
  for (const [label, other] of Object.entries(others)) {
    const skip = has(other.program) ? false : `needs ${other.program}`;

    test(`${label} follows a zone of ours with a key`, { skip, timeout: 120_000 }, async (t) => {
      const directory = scratch(t);
      const file = join(directory, 'db.example.org');
      writeFileSync(file, zoneText(1));
      const [port, otherPort] = await freePorts(2);
      const output = await ndots(
        t,
        directory,
        `example.org:${port} {\n bind 127.0.0.1\n tsig {\n secret ${name} ${secret}\n require AXFR IXFR\n }\n file ${file} {\n reload 1s\n }\n transfer {\n to 127.0.0.1:${otherPort}\n }\n errors\n}`,
      );
      const server = await other.secondary(join(directory, 'other'), otherPort, port);
      t.after(() => server.child.stop());
      await until(label, otherPort, 1, () => output() + server.child.output());
      writeFileSync(file, zoneText(2));
      await until(label, otherPort, 2, () => output() + server.child.output());
    });

    test(
      `we follow a zone of ${label} with a key, and keep it when the key is another one`,
      { skip, timeout: 120_000 },
      async (t) => {
        const directory = scratch(t);
        const file = join(directory, 'db.example.org');
        const keys = join(directory, 'keys');
        writeFileSync(file, zoneText(1));
        writeFileSync(keys, bindKey);
        const [port, otherPort] = await freePorts(2);
        let server = await other.primary(join(directory, 'other'), otherPort, file);
        t.after(() => server.child.stop());
        const corefile = (more: string): string =>
          `example.org:${port} {\n bind 127.0.0.1\n secondary {\n transfer from 127.0.0.1:${otherPort}\n ${more}\n }\n errors\n reload 2s 1s\n}`;
        const output = await ndots(t, directory, corefile(`key ${keys}`));
        await until('ndots', port, 1, output);
        const wrong = Buffer.alloc(32, 1).toString('base64');
        writeFileSync(join(directory, 'Corefile'), corefile(`key ${name} ${wrong}`));
        await says(output, /Reloading complete/);
        await server.child.stop();
        writeFileSync(file, zoneText(2));
        server = await other.primary(join(directory, 'other'), otherPort, file);
        await notified(port);
        await says(output, /Failed to transfer .*(BADSIG|BADKEY|NOTAUTH|not signed)/);
        assert.equal(await serialAt(port), 1);
        writeFileSync(join(directory, 'Corefile'), corefile(`key ${name} ${secret} hmac-sha256`));
        await until('ndots', port, 2, output);
      },
    );
  }
});

/** Notifies the server on `port` that the zone has changed. */
async function notified(port: number): Promise<void> {
  await pause(100);
  spawnSync('dig', [
    '@127.0.0.1',
    '-p',
    String(port),
    '+opcode=notify',
    '+aaflag',
    'example.org',
    'SOA',
    '+tries=1',
    '+time=2',
  ]);
}

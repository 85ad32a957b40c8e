/** An upstream that requires DNS cookies (RFC 7873), and clients that send their own cookies. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readDig } from '../kit/dig.ts';
import { freePorts } from '../kit/free-ports.ts';
import { hasProgram } from '../kit/real-resolver.ts';
import { serveProcess } from '../kit/serve-process.ts';
import { startNamed } from '../kit/zone-servers.ts';

const zone = `$TTL 300
@ IN SOA ns host 1 7200 3600 86400 60
@ IN NS ns
ns IN A 192.0.2.53
* IN A 192.0.2.1
`;

const kinds = [
  ['+nocookie'],
  ['+cookie'],
  ['+cookie=0102030405060708090a0b0c0d0e0f101112131415161718'],
  ['+noedns', '+nocookie'],
  ['+cookie', '+tcp'],
  ['+cookie', '+keepalive', '+padding=128', '+nsid', '+subnet=203.0.113.0/24'],
] as const;

const skip = !(hasProgram('named') && hasProgram('dig')) && 'needs named and dig';

for (const cache of ['', 'cache 30\n'])
  test(
    `BIND with require-server-cookie answers every client${cache === '' ? '' : ', whoever asked the cache first'}`,
    { skip },
    async (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-cookies-'));
      t.after(() => rmSync(directory, { recursive: true }));
      writeFileSync(join(directory, 'db.example.org'), zone);
      const [port] = await freePorts(1);
      const bind = await startNamed(
        directory,
        port!,
        `zone "example.org" { type primary; file "${join(directory, 'db.example.org')}"; };`,
        'require-server-cookie yes;',
      );
      t.after(() => bind.child.stop());
      const ours = await serveProcess(`${cache}forward . 127.0.0.1:${bind.port}`);
      t.after(() => ours.stop());
      const dig = (
        at: number,
        name: string,
        words: readonly string[],
      ): ReturnType<typeof readDig> => {
        const asked = ['-p', String(at), '@127.0.0.1', name, '+tries=1', '+time=5', ...words];
        return readDig(spawnSync('dig', asked, { encoding: 'utf8' }).stdout);
      };
      const direct = dig(bind.port, 'direct.example.org', ['+cookie', '+nobadcookie']);
      assert.equal(direct.status, 'BADCOOKIE', 'the upstream insists');
      for (const [number, first] of kinds.entries())
        for (const words of [first, ...kinds]) {
          const { status, answer, text } = dig(ours.port, `n${number}.example.org`, words);
          assert.equal(status, 'NOERROR', `${words.join(' ')} after ${first.join(' ')}`);
          assert.match(answer[0]!, /192\.0\.2\.1$/);
          assert.doesNotMatch(text, /COOKIE|CLIENT-SUBNET/);
        }
    },
  );

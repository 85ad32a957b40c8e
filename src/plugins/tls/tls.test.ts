import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { makeWorld, type World } from '../../../test/kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'ndots-tls-'));
let openssl = true;
before(() => {
  const request = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=dns',
  ];
  try {
    for (const name of ['a', 'b']) {
      const files = ['-keyout', join(folder, `${name}.key`), '-out', join(folder, `${name}.crt`)];
      execFileSync('openssl', [...request, ...files], { stdio: 'ignore' });
    }
  } catch {
    openssl = false;
  }
  writeFileSync(join(folder, 'text'), 'no PEM\n');
});
after(() => rmSync(folder, { recursive: true }));

const worldWith = (line: string): Promise<World> =>
  makeWorld(`tls://.:853 {\n root ${folder}\n ${line}\n whoami\n}`);

describe('tls', () => {
  test('certificate, key and client authentication reach the listener', async (t) => {
    if (!openssl) return t.skip('there is no openssl to make a certificate');
    const world = await worldWith('tls a.crt a.key b.crt {\n client_auth require_and_verify\n }');
    assert.deepEqual(world.server.endpoints[0]!.tls, {
      certificate: join(folder, 'a.crt'),
      key: join(folder, 'a.key'),
      authority: join(folder, 'b.crt'),
      clientAuth: 'require_and_verify',
    });
    await world.close();
  });

  test('a key of another certificate, files without PEM and missing files are found out at the start', async (t) => {
    if (!openssl) return t.skip('there is no openssl to make a certificate');
    await assert.rejects(
      worldWith('tls a.crt b.key'),
      /plugin\/tls: could not load TLS cert: .*key values mismatch/,
    );
    await assert.rejects(worldWith('tls text a.key'), /plugin\/tls: could not load TLS cert/);
    await assert.rejects(
      worldWith('tls a.crt none.key'),
      /plugin\/tls: could not load TLS cert: ENOENT/,
    );
  });

  test('mistakes are told; ACME is refused rather than ignored', async () => {
    await assert.rejects(worldWith('tls a.crt'), /Wrong argument count/);
    await assert.rejects(worldWith('tls a b c d'), /Wrong argument count/);
    await assert.rejects(
      worldWith('tls a b {\n client_auth maybe\n }'),
      /unknown authentication type 'maybe'/,
    );
    await assert.rejects(
      worldWith('tls {\n acme dns.example.org\n }'),
      /certificates by ACME are not available/,
    );
  });
});

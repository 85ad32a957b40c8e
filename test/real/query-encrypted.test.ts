import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { testCertificate, testKey } from '../kit/certificate.ts';
import { printed, start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

/** A server with only one encrypted transport on loopback. */
async function serve(
  t: TestContext,
  scheme: 'tls' | 'https',
): Promise<{ port: number; directory: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-query-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const [port] = await freePorts(1);
  writeFileSync(join(directory, 'cert.pem'), testCertificate);
  writeFileSync(join(directory, 'key.pem'), testKey);
  writeFileSync(
    join(directory, 'Corefile'),
    `${scheme}://.:${port} {\n  bind 127.0.0.1\n  tls cert.pem key.pem\n  hosts {\n    10.1.2.3 a.test\n  }\n}\n`,
  );
  const child = start('ndots', ['bin/ndots', 'serve', '-conf', join(directory, 'Corefile')]);
  t.after(() => child.stop());
  await printed(child, /ndots-\d/, 15_000);
  return { port, directory };
}

function query(
  server: string,
  env: NodeJS.ProcessEnv,
): Promise<{ out: string; err: string; code: number }> {
  return new Promise((resolve) => {
    execFile(
      'bin/ndots',
      ['query', 'a.test', `@${server}`, '+short'],
      { env: { ...process.env, ...env } },
      (error, out, err) => resolve({ out, err, code: error === null ? 0 : Number(error.code) }),
    );
  });
}

describe('ndots query over encrypted transports', () => {
  for (const [scheme, path] of [
    ['tls', ''],
    ['https', '/dns-query'],
  ] as const) {
    test(`an answer comes over ${scheme} from a server whose certificate is trusted, an error from one whose is not`, async (t) => {
      const { port, directory } = await serve(t, scheme);
      const server = `${scheme}://127.0.0.1:${port}${path}`;
      const trusted = await query(server, { NODE_EXTRA_CA_CERTS: join(directory, 'cert.pem') });
      assert.equal(trusted.out.trim(), '10.1.2.3', trusted.err);
      const refused = await query(server, {});
      assert.equal(refused.code, 2);
      assert.match(refused.err + refused.out, /certificate/i);
    });
  }
});

/**
 * Every property of CoreDNS with its example, started by CoreDNS and by ndots: what the table in docs/coredns-plugins.md says is served starts here, and
 * what it says is not built is refused with a reason. `COREDNS=PROGRAM` names CoreDNS; without it only ndots is started.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { directives, type Property } from '../../tools/coredns/properties.ts';
import { tableRows } from '../../tools/coredns-table.ts';
import { testCertificate, testKey } from '../kit/certificate.ts';
import { start, type Child } from '../kit/child.ts';
import { makeMmdb } from '../kit/mmdb.ts';
import { freePorts } from '../kit/serve-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'ndots-properties-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const keyName = 'Kexample.org.+013+55648';

function makeFiles(): void {
  const zone = '$TTL 300\n@ IN SOA ns host 1 7200 3600 86400 60\n@ IN NS ns\nns IN A 192.0.2.53\n';
  const files: Readonly<Record<string, string | Uint8Array>> = {
    'cert.pem': testCertificate,
    'key.pem': testKey,
    'db.example.org': zone,
    'zones/db.example.org': zone,
    'resolv.conf': 'nameserver 192.0.2.53\nsearch example.org\n',
    hosts: '192.0.2.1 a.example.org\n',
    weights: 'a.example.org\n192.0.2.1 3\n',
    'web.yaml': 'tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n',
    'tsig.keys':
      'key "k.example." {\n algorithm hmac-sha256;\n secret "NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=";\n};\n',
    kubeconfig: `apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n`,
    'test.mmdb': makeMmdb('GeoLite2-City', { '192.0.2.0/24': { country: { iso_code: 'DE' } } }),
    // The example of RFC 6605 section 6.1.
    [`${keyName}.key`]:
      'example.org. IN DNSKEY 257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==\n',
    [`${keyName}.private`]:
      'Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=\n',
  };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
}

/** Whether the program serves with this Corefile, and what it says. */
async function tried(
  program: readonly string[],
  property: Property,
): Promise<{ readonly serves: boolean; readonly output: string }> {
  const [port, http] = await freePorts(2);
  const own = mkdtempSync(join(folder, 'run-'));
  for (const name of ['db.example.org', `${keyName}.key`, `${keyName}.private`])
    cpSync(join(folder, name), join(own, name));
  const key = (property.key ?? 'example.org:PORT').replaceAll('PORT', String(port));
  const lines = property.example
    .replaceAll('@/', `${folder}/`)
    .replaceAll(/ @$/gm, ` ${own}`)
    .replaceAll('HTTP', String(http));
  const binds = lines.startsWith('bind') ? '' : ' bind 127.0.0.1\n';
  const corefile = join(own, 'Corefile');
  writeFileSync(corefile, `${key} {\n${binds} ${lines.replaceAll('\n', '\n ')}\n}\n`);
  const child = start('server', [...program, '-conf', corefile]);
  try {
    return { serves: await settled(child), output: child.output() };
  } finally {
    child.signal('SIGKILL');
    await child.exitCode;
  }
}

/** Until it says its name (it serves), or ends. */
async function settled(child: Child): Promise<boolean> {
  let ended = false;
  void child.exitCode.then(() => {
    ended = true;
  });
  for (const limit = Date.now() + 60_000; Date.now() < limit;) {
    if (/CoreDNS-\d|ndots-\d/.test(child.output())) return true;
    if (ended) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`neither serves nor ends: ${child.output()}`);
}

const coredns = process.env['COREDNS'];
const ndots = [join(import.meta.dirname, '../../bin/ndots'), 'serve'];
makeFiles();
const verdicts = new Map(
  (await tableRows()).map((row) => [`${row.directive} ${row.property}`, row.verdict]),
);

describe('properties of CoreDNS', { concurrency: 2 }, () => {
  for (const { name, properties } of directives) {
    for (const property of properties) {
      const label = `${name} ${property.name}`.trim();
      test(label, async () => {
        if (coredns !== undefined && property.elsewhere !== true) {
          const { serves, output } = await tried([coredns], property);
          assert.ok(serves, `CoreDNS does not start: ${output}`);
        }
        const { serves, output } = await tried(ndots, property);
        const verdict = verdicts.get(`${name} ${property.name}`)!;
        assert.equal(serves, verdict !== 'not built', `${verdict}: ${output}`);
        if (!serves) assert.match(output, /plugin\/|Unknown directive|not served|is not there/);
      });
    }
  }
});

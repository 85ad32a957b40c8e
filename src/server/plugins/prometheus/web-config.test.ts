import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { strangerCertificate, testCertificate, testKey } from '../../../../test/kit/certificate.ts';
import { readWebConfig } from './web-config.ts';

test('valid web configurations, and invalid ones that are rejected with a reason', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-web-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'cert.pem'), testCertificate);
  writeFileSync(join(directory, 'key.pem'), testKey);
  writeFileSync(join(directory, 'other.pem'), strangerCertificate);
  const path = join(directory, 'web.yml');
  const read = (lines: string): ReturnType<typeof readWebConfig> => {
    writeFileSync(path, lines);
    return readWebConfig(path);
  };
  const pair = 'tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n';
  const found = await read(`${pair}  min_version: TLS13\nhttp_server_config:\n  http2: false\n`);
  assert.equal(found.requestCert, false);
  assert.equal(found.load().minVersion, 'TLSv1.3');
  const inline = { tls_server_config: { cert: testCertificate, key: testKey } };
  assert.equal((await read(JSON.stringify(inline))).load().key, testKey);
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /TLS config is not present/],
    ['tls_server_config:\n', /TLS config is not present/],
    ['- a\n', /not a mapping/],
    ['tls_server_config:\n  key_file: key.pem\n', /missing one of cert or cert_file/],
    ['tls_server_config:\n  cert_file: cert.pem\n', /missing one of key or key_file/],
    [`${pair}  client_auth_type: Maybe\n`, /invalid ClientAuth: Maybe/],
    [`${pair}  client_ca_file: cert.pem\n`, /without a Client Auth Policy/],
    [`${pair}  min_version: TLS10\n`, /unknown TLS version TLS10/],
    [`${pair}  cipher_suites: [X]\n`, /cipher_suites is not available/],
    [`${pair}  no_such: 1\n`, /no_such is not available/],
    [`${pair}basic_auth_users:\n  a: b\n`, /basic_auth_users is not available/],
    ['tls_server_config:\n  cert_file: none.pem\n  key_file: key.pem\n', /could not load TLS cert/],
    [
      'tls_server_config:\n  cert_file: other.pem\n  key_file: key.pem\n',
      /could not load TLS cert/,
    ],
    ['a: [', /./],
  ];
  for (const [lines, message] of cases) await assert.rejects(read(lines), message, lines);
  await assert.rejects(readWebConfig(join(directory, 'none.yml')), /cannot be read/);
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { strangerCertificate, testCertificate, testKey } from '../kit/certificate.ts';
import { start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

interface Secured {
  readonly directory: string;
  readonly port: number;
}

/** A server that uses this web configuration to serve its metrics over TLS. */
async function secured(t: TestContext, config: string): Promise<Secured> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-web-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const [port, dns] = await freePorts(2);
  writeFileSync(join(directory, 'cert.pem'), testCertificate);
  writeFileSync(join(directory, 'key.pem'), testKey);
  writeFileSync(join(directory, 'web.yml'), config);
  const server = await serveProcess(
    `whoami\n}\n.:${dns} {\n bind 127.0.0.1\n prometheus 127.0.0.1:${port} {\n tls ${directory}/web.yml\n }\n whoami`,
  );
  t.after(() => server.stop());
  return { directory, port };
}

const plain = 'tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n';
const mutual = `${plain}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: cert.pem\n`;

function get(port: number, options: object = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port, path: '/metrics', ca: testCertificate, agent: false, ...options },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (chunk: string) => (text += chunk));
        answer.on('end', () => resolve(text));
      },
    );
    asked.on('error', reject);
    asked.end();
  });
}

describe('metrics over TLS', () => {
  test('a certificate that is renewed is used from the next connection on', async (t) => {
    const { port, directory } = await secured(t, plain);
    assert.match(await get(port), /^coredns_build_info/m);
    // This certificate does not match its key. While the pair is invalid, the previous one stays in use.
    writeFileSync(join(directory, 'cert.pem'), strangerCertificate);
    assert.match(await get(port), /^coredns_build_info/m);
    writeFileSync(join(directory, 'cert.pem'), testCertificate);
    assert.match(await get(port), /^coredns_build_info/m);
  });

  test('clients must present a certificate if the file requires it', async (t) => {
    const { port } = await secured(t, mutual);
    await assert.rejects(get(port));
    assert.match(await get(port, { cert: testCertificate, key: testKey }), /coredns_build_info/);
  });

  test('and one of the names that it allows', async (t) => {
    const { port } = await secured(t, `${mutual}  client_allowed_sans: [other.example]\n`);
    await assert.rejects(get(port, { cert: testCertificate, key: testKey }));
  });

  const prometheus = spawnSync('prometheus', ['--version']).status === 0;
  test('Prometheus itself scrapes it', { skip: !prometheus, timeout: 120_000 }, async (t) => {
    const { port, directory } = await secured(t, mutual);
    const [web] = await freePorts(1);
    const config = join(directory, 'prometheus.yml');
    writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: '500ms', scrape_timeout: '500ms' },
        scrape_configs: [
          {
            job_name: 'dns',
            scheme: 'https',
            static_configs: [{ targets: [`127.0.0.1:${port}`] }],
            tls_config: {
              ca_file: join(directory, 'cert.pem'),
              cert_file: join(directory, 'cert.pem'),
              key_file: join(directory, 'key.pem'),
            },
          },
        ],
      }),
    );
    const child = start('prometheus', [
      'prometheus',
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${web}`,
    ]);
    t.after(async () => {
      child.signal('SIGKILL');
      await child.exitCode;
    });
    let found = '';
    for (let tries = 0; !found.includes('"1"') && tries < 300; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      found = await fetch(`http://127.0.0.1:${web}/api/v1/query?query=up`).then(
        (answer) => answer.text(),
        () => '',
      );
    }
    assert.match(found, /"1"/, child.output());
  });
});

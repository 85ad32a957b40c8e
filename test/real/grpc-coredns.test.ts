import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { RCODE } from '../../src/server/wire/iana.ts';
import { printData } from '../../src/server/wire/print.ts';
import { Asker } from '../kit/ask.ts';
import { testCertificate, testKey } from '../kit/certificate.ts';
import { corednsPath, startCoredns } from '../kit/etcd.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

const coredns = corednsPath();
const skip = coredns === null ? 'CoreDNS is not there (coredns on PATH, or COREDNS=FILE)' : false;

/** Writes a self-signed certificate to files, which both client and server use. */
function certificate(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-grpc-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'cert.pem'), testCertificate);
  writeFileSync(join(directory, 'key.pem'), testKey);
  return directory;
}

const zone = (): string => `template IN TXT big.example {
    answer "{{ .Name }} 60 IN TXT ${'\\"0123456789012345678901234567890123456789012345678901234567890123456789\\" '.repeat(30).trim()}"
  }
  template IN A example {
    answer "{{ .Name }} 60 IN A 192.0.2.7"
  }
  template ANY ANY . {
    rcode NXDOMAIN
  }`;

async function check(port: number): Promise<void> {
  const asker = await Asker.to(port);
  try {
    const found = await asker.ask('a.example.', 'A');
    assert.deepEqual(
      found.answer.map(({ type, data }) => printData(type, data)),
      ['192.0.2.7'],
    );
    const big = await asker.ask('big.example.', 'TXT');
    assert.equal(big.answer.length, 1);
    assert.equal((await asker.ask('nowhere.test.', 'A')).rcode, RCODE.NXDOMAIN);
    const many = await Promise.all(
      Array.from({ length: 200 }, (_, i) => asker.ask(`n${i}.example.`, 'A')),
    );
    assert.equal(many.filter((one) => one.answer.length === 1).length, 200);
  } finally {
    asker.close();
  }
}

describe('gRPC beside CoreDNS', { skip }, () => {
  for (const secure of [false, true]) {
    const how = secure ? 'with TLS and client certificates' : 'without TLS';
    test(`CoreDNS queries ndots, ${how}`, { timeout: 120_000 }, async (t) => {
      const directory = certificate(t);
      const [port] = await freePorts(1);
      const file = (name: string): string => join(directory, name);
      const tls = secure
        ? `tls ${file('cert.pem')} ${file('key.pem')} ${file('cert.pem')} {\n client_auth require_and_verify\n}`
        : '';
      const own = await serveProcess(
        `whoami\n}\ngrpc://.:${port} {\n bind 127.0.0.1\n ${tls}\n ${zone()}`,
      );
      t.after(() => own.stop());
      const client = secure
        ? `{\n tls ${file('cert.pem')} ${file('key.pem')} ${file('cert.pem')}\n tls_servername dns.example\n}`
        : '';
      const peer = await startCoredns(
        coredns!,
        (at) => `.:${at} {\nbind 127.0.0.1\ngrpc . 127.0.0.1:${port} ${client}\n}\n`,
      );
      t.after(() => peer.stop());
      await check(peer.port);
    });

    test(`ndots queries CoreDNS, ${how}`, { timeout: 120_000 }, async (t) => {
      const directory = certificate(t);
      const file = (name: string): string => join(directory, name);
      const tls = secure
        ? `tls ${file('cert.pem')} ${file('key.pem')} ${file('cert.pem')} {\n client_auth require_and_verify\n}`
        : '';
      const peer = await startCoredns(
        coredns!,
        (port) => `grpc://.:${port} {\nbind 127.0.0.1\n${tls}\n${zone()}\n}\n`,
      );
      t.after(() => peer.stop());
      const client = secure
        ? `tls ${file('cert.pem')} ${file('key.pem')} ${file('cert.pem')}\n tls_servername dns.example`
        : '';
      const own = await serveProcess(`grpc . 127.0.0.1:${peer.port} {\n ${client}\n}`);
      t.after(() => own.stop());
      await check(own.port);
      const [requests, failures] = await Promise.all([
        own.sum('coredns_grpc_requests_total'),
        own.sum('ndots_grpc_failures_total'),
      ]);
      assert.deepEqual([requests, failures], [203, 0]);
    });
  }
});

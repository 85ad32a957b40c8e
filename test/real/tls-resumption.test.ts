import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connect, type SecureVersion } from 'node:tls';
import { testCertificate, testKey } from '../kit/certificate.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

/** Connects once and also sends a query, because TLS 1.3 tickets arrive after the handshake. */
async function visit(
  port: number,
  version: SecureVersion,
  session: Buffer | null,
): Promise<{ readonly reused: boolean; readonly session: Buffer | null }> {
  const socket = connect({
    host: '127.0.0.1',
    port,
    ca: testCertificate,
    minVersion: version,
    maxVersion: version,
    ...(session !== null && { session }),
  });
  let latest = session;
  socket.on('session', (ticket: Buffer) => {
    latest = ticket;
  });
  await once(socket, 'secureConnect');
  const reused = socket.isSessionReused();
  socket.write(
    Buffer.from('001c00010100000100000000000003616263066578616d706c650000010001', 'hex'),
  );
  await once(socket, 'data');
  socket.destroy();
  return { reused, session: latest };
}

describe('TLS sessions of four workers', () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`of ${version} are resumed at whichever the connection falls to`, async (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-resume-'));
      t.after(() => rmSync(directory, { recursive: true, force: true }));
      const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
      writeFileSync(cert, testCertificate);
      writeFileSync(key, testKey);
      const [port] = await freePorts(1);
      const server = await serveProcess(
        `multisocket 4\nwhoami\n}\ntls://.:${port} {\n bind 127.0.0.1\n tls ${cert} ${key}\n multisocket 4\n whoami`,
      );
      t.after(() => server.stop());
      let { session } = await visit(port, version, null);
      const reused: boolean[] = [];
      for (let i = 0; i < 16; i++) {
        const again = await visit(port, version, session);
        reused.push(again.reused);
        ({ session } = again);
      }
      assert.deepEqual(reused, Array<boolean>(16).fill(true));
    });
  }
});

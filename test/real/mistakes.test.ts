import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { printed, start, type Child } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

const program = join(import.meta.dirname, '../../bin/ndots');
const directory = mkdtempSync(join(tmpdir(), 'ndots-mistakes-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const fileOf = (name: string, text: string | Buffer): string => {
  const file = join(directory, name);
  writeFileSync(file, text);
  return file;
};

/** The output of `serve` for a Corefile that it refuses, in which case it must exit without being stopped. */
async function refusal(conf: string): Promise<string> {
  const [port] = await freePorts(1);
  const child = start('ndots', [program, 'serve', '-conf', conf, '-dns.port', String(port)]);
  const late = setTimeout(() => child.signal('SIGKILL'), 20_000);
  const code = await child.exitCode;
  clearTimeout(late);
  assert.equal(code, 1, child.output());
  return child.output();
}

describe('a file that is not a Corefile', () => {
  test('a named pipe is refused at once, with another way', async () => {
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const text = await refusal(pipe);
    assert.match(text, /is not a regular file/);
    assert.match(text, /-conf stdin/);
  });

  test('a device without end is refused, and so is a file of 2 MiB', async () => {
    assert.match(await refusal('/dev/zero'), /is not a regular file/);
    const large = fileOf('large', Buffer.alloc(2 * 1024 * 1024, 'x'));
    assert.match(await refusal(large), /is larger than 1 MiB/);
  });
});

describe('a Corefile with a mistake', () => {
  test('an unset variable is named beside the mistake that it makes', async () => {
    const text = await refusal(fileOf('unset', '. {\n forward . {$NDOTS_UNSET}\n}\n'));
    assert.match(text, /not an IP address or file: ""/);
    assert.match(text, /environment variable NDOTS_UNSET is not set/);
  });

  test('an address with TLS and no certificate has file, line and address', async () => {
    const text = await refusal(fileOf('tls', '. {\n whoami\n}\ntls://example.org {\n whoami\n}\n'));
    assert.match(text, /tls:\/\/example\.org needs a certificate/);
    assert.match(text, /tls:4:1/);
  });

  test('a hosts line without a valid address is reported, and the rest is served', async () => {
    const server = await serveProcess('hosts {\n 10.0.0.300 a.example\n 10.0.0.3 b.example\n}\n');
    try {
      assert.match(server.child.output(), /the line '10\.0\.0\.300 a\.example' is ignored/);
    } finally {
      await server.stop();
    }
  });

  test('on reload a named pipe in its place changes nothing, and the server continues', async () => {
    const [port] = await freePorts(1);
    const file = fileOf('Corefile', `.:${port} {\n bind 127.0.0.1\n whoami\n}\n`);
    const child: Child = start('ndots', [program, 'serve', '-conf', file]);
    try {
      await printed(child, /ndots-\d/, 20_000);
      rmSync(file);
      execFileSync('mkfifo', [file]);
      child.signal('SIGUSR1');
      await printed(child, /The previous configuration stays in use/, 5000);
      assert.match(child.output(), /is not a regular file/);
    } finally {
      await child.stop();
    }
  });
});

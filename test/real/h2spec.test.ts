import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { httpsListener } from '../../src/server/transport/https/https.ts';
import { testTls } from '../kit/certificate.ts';
import { answerOne, listenerParts, queryBytes } from '../kit/loopback.ts';

const installed = spawnSync('h2spec', ['--version']).status === 0;

describe('HTTP/2 as h2spec sees it', () => {
  test(
    'all of its cases pass (RFC 9113, RFC 7541)',
    { skip: installed ? false : 'h2spec is not installed' },
    async (t) => {
      const listener = httpsListener(listenerParts(answerOne, { scheme: 'https' }, {}, testTls));
      await listener.open();
      t.after(() => listener.close(0));
      const path = `/dns-query?dns=${queryBytes('a.test.', 0).toString('base64url')}`;
      const words = ['-h', '127.0.0.1', '-p', String(listener.port), '-t', '-k', '-P', path];
      const child = spawn('h2spec', words);
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
      await once(child, 'close');
      assert.match(text, /\b0 failed/, text.slice(-4000));
    },
  );
});

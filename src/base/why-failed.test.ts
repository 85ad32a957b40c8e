import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { testCertificate } from '../../test/kit/certificate.ts';
import { whyFailed } from './why-failed.ts';

async function failureOf(run: () => unknown): Promise<string> {
  try {
    await run();
  } catch (error) {
    const text = whyFailed(error);
    assert.doesNotMatch(text, /\bE[A-Z]{4,}|ERR_|error:|_/, 'a code of the runtime');
    return text;
  }
  return assert.fail('it works');
}

describe('a failure is told in words', () => {
  test('of a file that is not there', async () => {
    assert.equal(await failureOf(() => readFileSync('/nowhere')), 'no such file or directory');
    assert.equal(await failureOf(() => readFileSync('/')), 'it is a directory');
  });

  test('of a port that nobody listens at, by address and by name', async () => {
    const refused = async (host: string): Promise<void> => {
      const socket = connect({ host, port: 1 });
      const [error] = (await once(socket, 'error')) as [Error];
      throw error;
    };
    assert.match(await failureOf(() => refused('127.0.0.1')), /nobody listens there/);
    assert.match(await failureOf(() => refused('localhost')), /nobody listens there/);
  });

  test('of a name that is none', async () => {
    assert.match(await failureOf(() => lookup('nowhere.invalid')), /^the name /);
  });

  test('of files for TLS that are no PEM, or of two pairs', async () => {
    const key = 'no key';
    assert.match(
      await failureOf(() => createSecureContext({ cert: 'no certificate', key })),
      /no PEM text/,
    );
    assert.match(
      await failureOf(() => createSecureContext({ cert: testCertificate, key })),
      /no PEM text|no key/,
    );
  });
});

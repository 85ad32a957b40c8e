import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { testCertificate } from '../../../test/kit/certificate.ts';
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

describe('a failure in words', () => {
  test('for a missing file', async () => {
    assert.equal(await failureOf(() => readFileSync('/nowhere')), 'no such file or directory');
    assert.equal(await failureOf(() => readFileSync('/')), 'it is a directory');
  });

  test('for a URL used as a file name', async () => {
    for (const url of ['https://example.com/Corefile', 's3://bucket/x.pcap'])
      assert.match(await failureOf(() => readFileSync(url)), /a URL, not a file; download it/);
    assert.equal(await failureOf(() => readFileSync('/no://where')), 'no such file or directory');
  });

  test('for a port without a listener, by address and by name', async () => {
    const refused = async (host: string): Promise<void> => {
      const socket = connect({ host, port: 1 });
      const [error] = (await once(socket, 'error')) as [Error];
      throw error;
    };
    assert.match(await failureOf(() => refused('127.0.0.1')), /nothing listens there/);
    assert.match(await failureOf(() => refused('localhost')), /nothing listens there/);
  });

  test('for a name that does not exist', async () => {
    assert.match(await failureOf(() => lookup('nowhere.invalid')), /^the name /);
  });

  test('for a client certificate that the peer rejects', async () => {
    // Alerts as the runtime reports them, for a Go server (expired client certificates) and for OpenSSL.
    const alert = (text: string, number: number): Error =>
      new Error(
        `40B3A181047F0000:error:0A000412:SSL routines:ssl3_read_bytes:${text}:../deps/openssl/openssl/ssl/record/rec_layer_s3.c:918:SSL alert number ${number}\n`,
      );
    const fail = (error: Error) => (): never => {
      throw error;
    };
    assert.equal(
      await failureOf(fail(alert('ssl/tls alert bad certificate', 42))),
      'the other side rejects our certificate',
    );
    assert.equal(
      await failureOf(fail(alert('tlsv13 alert certificate required', 116))),
      'the other side requires a client certificate',
    );
    assert.equal(
      await failureOf(fail(alert('tlsv1 alert internal error', 80))),
      'the other side closed TLS: internal error',
    );
  });

  test('for the TLS library, by its reason alone', async () => {
    const text =
      '40B3:error:0A0000C1:SSL routines:tls_early_post_process:no shared cipher:ssl.c:1:';
    assert.equal(
      await failureOf(() => {
        throw new Error(text);
      }),
      'no shared cipher',
    );
  });

  test('for TLS files that are not PEM or do not match', async () => {
    const key = 'no key';
    assert.match(
      await failureOf(() => createSecureContext({ cert: 'no certificate', key })),
      /no PEM text/,
    );
    assert.match(
      await failureOf(() => createSecureContext({ cert: testCertificate, key })),
      /no PEM text|not a readable key/,
    );
  });
});

import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { problemsIn } from '../../base/problem.ts';
import { testCertificate, testKey } from '../../../../test/kit/certificate.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-tls-'));
before(() => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(join(directory, 'a.crt'), testCertificate);
  writeFileSync(join(directory, 'a.key'), testKey);
  writeFileSync(join(directory, 'b.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(join(directory, 'text'), 'no PEM\n');
});
after(() => rmSync(directory, { recursive: true }));

const worldWith = (line: string): Promise<World> =>
  makeWorld(`tls://.:853 {\n root ${directory}\n ${line}\n whoami\n}`);

const refusal = (line: string): Promise<string> =>
  worldWith(line).then(
    () => 'it started',
    (error: unknown) => (problemsIn(error) ?? []).map((one) => one.print()).join('\n'),
  );

describe('tls', () => {
  test('the certificate, the key and client authentication reach the listener', async () => {
    const world = await worldWith('tls a.crt a.key a.crt {\n client_auth require_and_verify\n }');
    assert.deepEqual(world.server.endpoints[0]!.tls, {
      certificate: join(directory, 'a.crt'),
      key: join(directory, 'a.key'),
      authority: join(directory, 'a.crt'),
      clientAuth: 'require_and_verify',
      keyLog: '',
    });
    await world.close();
  });

  test('clients are not asked for a certificate unless configured', async () => {
    const world = await worldWith('tls a.crt a.key');
    assert.equal(world.server.endpoints[0]!.tls!.clientAuth, 'nocert');
    await world.close();
  });

  test('a key log is resolved relative to the root, with a warning, and created only by a process that serves', async () => {
    const world = await worldWith('tls a.crt a.key {\n keylog secrets\n }');
    assert.equal(world.server.endpoints[0]!.tls!.keyLog, join(directory, 'secrets'));
    assert.match(
      world.log.join('\n'),
      /\[WARNING\] plugin\/tls: Writing TLS Key Log to ".*\/secrets"/,
    );
    assert.equal(existsSync(join(directory, 'secrets')), false);
    await world.close();
  });

  test('an existing key log that others can read causes a warning', async () => {
    const file = join(directory, 'open-secrets');
    writeFileSync(file, '');
    const warned = async (mode: number): Promise<boolean> => {
      chmodSync(file, mode);
      const world = await worldWith('tls a.crt a.key {\n keylog open-secrets\n }');
      await world.close();
      return /open-secrets" contains the secrets of all connections but can be read by others; run chmod 600 /.test(
        world.log.join('\n'),
      );
    };
    assert.equal(await warned(0o644), true);
    assert.equal(await warned(0o640), true);
    assert.equal(await warned(0o600), false);
  });

  test('an unwritable key log is detected at startup', async () => {
    for (const [file, why] of [
      ['none/secrets', 'no such file or directory'],
      ['.', 'is a directory'],
    ])
      assert.match(
        await refusal(`tls a.crt a.key {\n keylog ${file}\n }`),
        new RegExp(`unable to write TLS Key Log to ".*": .*${why}`),
      );
    await assert.rejects(worldWith('tls a.crt a.key {\n keylog\n }'), /Wrong argument count/);
  });

  test('a key for another certificate, files without PEM and missing files are detected at startup', async () => {
    await assert.rejects(
      worldWith('tls a.crt b.key'),
      /plugin\/tls: could not load TLS cert: the key does not belong to the certificate/,
    );
    await assert.rejects(worldWith('tls text a.key'), /plugin\/tls: could not load TLS cert/);
    await assert.rejects(
      worldWith('tls a.crt none.key'),
      /plugin\/tls: could not load TLS cert: no such file/,
    );
  });

  test('a CA file without a certificate and a key with a passphrase are detected at startup', async () => {
    writeFileSync(join(directory, 'half.crt'), testCertificate.slice(0, 200));
    writeFileSync(join(directory, 'empty'), '');
    for (const [authority, why] of [
      ['empty', 'it contains no PEM text'],
      ['text', 'it contains no PEM text'],
      ['half.crt', 'the PEM text is truncated'],
    ])
      assert.match(
        await refusal(`tls a.crt a.key ${authority}`),
        new RegExp(`could not read root certs: ${why}`),
      );
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const secret = {
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-128-cbc',
      passphrase: 'x',
    } as const;
    writeFileSync(join(directory, 'encrypted.key'), privateKey.export(secret));
    assert.match(await refusal('tls a.crt encrypted.key'), /the key is encrypted/);
  });

  for (const [what, year, told] of [
    ['is over', 2200, /the certificate a\.crt expired on \w{3} /],
    ['has not come yet', 2000, /the certificate a\.crt is not valid before \w{3} .*, so clients/],
  ] as const)
    test(`a certificate whose time ${what} causes a warning`, async () => {
      const clock = new VirtualClock(Date.UTC(year, 0, 1));
      const corefile = `tls://.:853 {\n root ${directory}\n tls a.crt a.key\n whoami\n}`;
      const world = await makeWorld(corefile, { clock });
      assert.match(world.log.join('\n'), told);
      await world.close();
    });

  test("a certificate's expiry is a metric and, while an expired one is served, a line in the log", async () => {
    const ends = new X509Certificate(testCertificate).validToDate.getTime();
    const clock = new VirtualClock(ends - 5 * 3600_000);
    const corefile = `tls://.:853 {\n root ${directory}\n tls a.crt a.key\n whoami\n}`;
    const world = await makeWorld(corefile, { clock });
    const metric = (): string | undefined =>
      /^ndots_tls_certificate_expiration_timestamp_seconds\{certificate=".*\/a\.crt"\} (.*)$/m.exec(
        world.metrics(),
      )?.[1];
    const told = (): readonly string[] => world.log.filter((line) => line.includes('expired on'));
    assert.equal(Number(metric()), ends / 1000);
    await clock.advance(4 * 3600_000);
    assert.deepEqual(told(), []);
    await clock.advance(30 * 3600_000);
    assert.equal(told().length, 1, told().join('\n'));
    assert.match(told()[0]!, /^\[ERROR\] plugin\/tls: the certificate .*a\.crt expired on Oct 28/);
    assert.equal(Number(metric()), ends / 1000);
    await world.close();
  });

  test('a reload adds the metric for a renewed certificate and removes that of an unused one', async () => {
    const world = await worldWith('tls a.crt a.key');
    const count = (): number =>
      world.metrics().match(/^ndots_tls_certificate_expiration_timestamp_seconds\{/gm)?.length ?? 0;
    assert.equal(count(), 1);
    assert.ok(await world.server.reload());
    assert.equal(count(), 1);
    writeFileSync(join(directory, 'c.crt'), testCertificate);
    world.setCorefile(`tls://.:853 {\n root ${directory}\n tls c.crt a.key\n whoami\n}`);
    assert.ok(await world.server.reload());
    assert.equal(count(), 1);
    assert.match(world.metrics(), /certificate=".*c\.crt"/);
    await world.close();
  });

  test('a key in place of the certificate is reported', async () => {
    assert.match(
      await refusal('tls a.key a.crt'),
      /a\.key contains a private key; the certificate must come first/,
    );
  });

  test('an error in the certificate line is the only one reported', async () => {
    const told = await refusal('tls a.crt');
    assert.match(told, /Wrong argument count/);
    assert.doesNotMatch(told, /needs a certificate/);
  });

  test('errors are reported; ACME is rejected rather than ignored', async () => {
    await assert.rejects(worldWith('tls a.crt'), /Wrong argument count/);
    await assert.rejects(worldWith('tls a b c d'), /Wrong argument count/);
    await assert.rejects(
      worldWith('tls a b {\n client_auth maybe\n }'),
      /unknown authentication type 'maybe'/,
    );
    await assert.rejects(
      worldWith('tls {\n acme dns.example.org\n }'),
      /ACME certificates are not supported/,
    );
  });
});

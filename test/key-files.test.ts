/** Key and certificate files are replaced while a reload reads them. A half-written file must never be used. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { testCertificate, testKey } from './kit/certificate.ts';
import { makeWorld } from './kit/world.ts';
import { writeZoneKey, zoneKey } from './kit/zone-keys.ts';

const zone = '$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nwww A 192.0.2.1\n';
const tsigKey =
  'key "one.example." {\n  algorithm hmac-sha256;\n  secret "c2VjcmV0c2VjcmV0c2VjcmV0";\n};\n';

const uses: readonly {
  readonly what: string;
  readonly directive: (dnssecKey: string) => string;
  readonly file: (dnssecKey: string) => string;
}[] = [
  {
    what: 'the private key of dnssec',
    directive: (key) => `dnssec {\n key file ${key}\n }\n file db`,
    file: (key) => `${key}.private`,
  },
  {
    what: 'the public key of dnssec',
    directive: (key) => `dnssec {\n key file ${key}\n }\n file db`,
    file: (key) => `${key}.key`,
  },
  {
    what: 'secrets of tsig',
    directive: () => 'tsig {\n secrets keys\n }\n file db',
    file: () => 'keys',
  },
  {
    what: 'the key of secondary',
    directive: () => 'file db\n secondary sec.example {\n transfer from 127.0.0.1:1\n key keys\n }',
    file: () => 'keys',
  },
  {
    what: 'the certificate of forward',
    directive: () =>
      'file db\n forward other.example tls://127.0.0.1:1 {\n tls cert.pem key.pem\n }',
    file: () => 'cert.pem',
  },
  {
    what: 'the key of etcd',
    directive: () =>
      'file db\n etcd other.example {\n endpoint https://127.0.0.1:1\n tls cert.pem key.pem\n }',
    file: () => 'key.pem',
  },
];

describe('a reload that finds half of a file', () => {
  for (const { what, directive, file } of uses)
    test(`${what}: is not used, and the next complete one is`, async (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-key-files-'));
      t.after(() => rmSync(directory, { recursive: true }));
      writeFileSync(join(directory, 'db'), zone);
      writeFileSync(join(directory, 'keys'), tsigKey);
      writeFileSync(join(directory, 'cert.pem'), testCertificate);
      writeFileSync(join(directory, 'key.pem'), testKey);
      writeZoneKey(directory, zoneKey('example.org.'));
      const dnssecKey = readdirSync(directory)
        .find((name) => name.endsWith('.private'))!
        .slice(0, -'.private'.length);
      const corefile = (number: number): string =>
        `example.org other.example {\n # ${number}\n reload\n view v${number} {\n expr true\n }\n ${directive(dnssecKey)}\n}`;
      const world = await makeWorld(corefile(0), { directory });
      t.after(() => world.close());
      const answers = async (): Promise<void> =>
        assert.equal((await world.ask('www.example.org. A')).answer.length, 1);
      await answers();
      const path = join(directory, file(dnssecKey));
      const whole = readFileSync(path, 'utf8');
      let number = 1;
      for (const half of [whole.slice(0, whole.length / 3), whole.slice(0, -30)]) {
        writeFileSync(path, half);
        world.setCorefile(corefile(number++));
        assert.equal(
          await world.clock.run(world.server.reload()),
          false,
          `${half.length} bytes of ${whole.length}`,
        );
        await answers();
      }
      writeFileSync(path, whole);
      world.setCorefile(corefile(number));
      assert.ok(await world.clock.run(world.server.reload()));
      await answers();
    });
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Problem } from '../base/problem.ts';
import { printHex } from '../wire/encoding.ts';
import { parseName, printName } from '../wire/name.ts';
import { writeZoneKey, zoneKey } from '../../../test/kit/zone-keys.ts';
import { readKeyPair } from './key-file.ts';
import { dsData, keyTag } from './key-pair.ts';

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'ndots-keys-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** Returns the code and text of the problem that is reported when the key is read, without the directory. */
function problem(path: string, base: string): string {
  try {
    readKeyPair(join(path, base));
  } catch (error) {
    assert.ok(error instanceof Problem);
    return `${error.code} ${error.message.replaceAll(`${path}/`, '')}`;
  }
  return '';
}

describe('keys in files', () => {
  for (const algorithm of [8, 10, 13, 14, 15])
    test(`an algorithm ${algorithm} key pair is read by each of its names`, (t) => {
      const made = zoneKey('Example.org.', algorithm);
      const base = writeZoneKey(directory(t), made);
      for (const name of [base, `${base}.key`, `${base}.private`]) {
        const pair = readKeyPair(name);
        assert.deepEqual(
          [printName(pair.owner), pair.flags, pair.algorithm, pair.tag, pair.ttl],
          ['example.org.', 257, algorithm, made.tag, 3600],
        );
      }
    });

  test('a key has the tag and the digest of RFC 4509', () => {
    // RFC 4509 section 2.3.
    const publicKey = Buffer.from(
      'AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw==',
      'base64',
    );
    const data = Uint8Array.of(1, 0, 3, 5, ...publicKey);
    assert.equal(keyTag(data), 60485);
    const pair = { data, tag: 60485, algorithm: 5 } as Parameters<typeof dsData>[0];
    const owner = parseName('dskey.example.com.');
    assert.equal(
      printHex(dsData(pair, owner)).toLowerCase(),
      'ec450502d4b7d520e7bb5f0f67674a0cceb1e3e0614b93c4f9e99b8383f6a1e4469da50a',
    );
  });

  test('two files that do not belong together are refused', (t) => {
    const path = directory(t);
    for (const algorithm of [8, 13, 15]) {
      const name = `K${algorithm}`;
      const [one, other] = [zoneKey('a.', algorithm), zoneKey('a.', algorithm)];
      writeZoneKey(path, { ...one, secret: other.secret }, name);
      assert.match(
        problem(path, name),
        new RegExp(
          `^bad-key ${name}\\.private:1: the private key (?:does not belong to the public one|does not fit)`,
        ),
      );
    }
  });

  test('a malformed file is refused with the line number', (t) => {
    const path = directory(t);
    const made = zoneKey('a.');
    const cases: readonly (readonly [string, string, string])[] = [
      [made.key.replace('DNSKEY 257', 'DNSKEY'), made.secret, 'K.key:3:'],
      [
        made.key.replace('257 3 13', '257 3 13 AAAA'),
        made.secret,
        'K.key:3:1: the public key does not fit ECDSAP256SHA256',
      ],
      [
        made.key.replace('DNSKEY 257', 'DNSKEY 1'),
        made.secret,
        'K.key:3:1: this is not a zone key',
      ],
      [
        made.key.replace(/DNSKEY.*/, 'TXT x'),
        made.secret,
        'K.key:3:1: no public key found: this is not a DNSKEY record',
      ],
      [
        made.key.replace(' 3 13 ', ' 3 5 '),
        made.secret,
        'K.key:3:1: algorithm 5 cannot sign records',
      ],
      ['; nothing\n', made.secret, 'K.key:1: no public key found: the file has no record'],
      [
        made.key + made.key.split('\n')[2]!,
        made.secret,
        'K.key:4:1: there is a second key in the file',
      ],
      [
        made.key,
        made.secret.replace(/PrivateKey: ./, 'PrivateKey: *'),
        'K.private:3:1: PrivateKey must be base64',
      ],
      [made.key, made.secret.replace(/PrivateKey:.*/, ''), 'K.private:1: no private key found'],
      [
        made.key,
        made.secret.replace('v1.3', 'v2.0'),
        'K.private:1:1: private key format v2.0 is not supported',
      ],
      [
        made.key,
        made.secret.replace('Algorithm: 13', 'Algorithm: 8'),
        'K.private:2:1: the private key uses algorithm 8',
      ],
      [
        made.key,
        `${made.secret}Label: pkcs11:x\n`,
        'K.private:5:1: the private key is in a hardware module',
      ],
      [made.key, 'not a key', 'K.private:1:1: a line in a private key has the form FIELD: VALUE'],
    ];
    for (const [key, secret, expected] of cases) {
      writeZoneKey(path, { ...made, key, secret }, 'K');
      const text = problem(path, 'K');
      assert.ok(text.includes(expected), `${text} is not ${expected}`);
    }
  });

  test('a missing file is reported by name, with what to check', (t) => {
    const path = directory(t);
    assert.equal(problem(path, 'K'), 'key-unreadable open K.key: no such file or directory');
    writeFileSync(join(path, 'K.key'), zoneKey('a.').key);
    assert.equal(problem(path, 'K'), 'key-unreadable open K.private: no such file or directory');
  });
});

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { freePorts } from '../kit/free-ports.ts';
import { sign, type Signing } from '../kit/sign-zone.ts';
import { has, ndots, scratch } from '../kit/zone-transfers.ts';

/** Served and transferred zones, checked by other programs: delv, ldns-verify-zone and named-checkzone. */

const program = join(import.meta.dirname, '../../bin/ndots');
const needed = ['delv', 'dnssec-signzone', 'ldns-verify-zone', 'named-checkzone'];
const missing = needed.filter((name) => !has(name));
const skip = missing.length > 0 ? `needs ${missing.join(' and ')}` : false;

const zoneText = `$TTL 300
@ SOA ns host 1 3600 600 86400 60
@ NS ns
@ MX 10 mail
ns A 192.0.2.1
ns AAAA 2001:db8::1
mail A 192.0.2.2
www CNAME mail
a.deep.name TXT "far \\"down\\"" "second"
*.wild A 192.0.2.3
there.wild TXT here
cut NS ns.cut
ns.cut A 192.0.2.4
signed NS ns.elsewhere.
signed DS 12345 13 2 ${'ab'.repeat(32)}
_s._tcp SRV 1 2 53 ns
_25._tcp.mail TLSA 3 1 1 ${'cd'.repeat(32)}
svc HTTPS 1 . alpn=h2 ipv4hint=192.0.2.5
caa CAA 0 issue "ca.example"
naptr NAPTR 10 20 "u" "E2U+sip" "!^.*$!sip:a@b!" .
`;

/** Questions, and delv's output for a correct reply. */
const questions: readonly (readonly [string, RegExp])[] = [
  ...[
    'example.org SOA',
    'example.org NS',
    'example.org MX',
    'example.org DNSKEY',
    'ns.example.org A',
    'ns.example.org AAAA',
    'www.example.org A',
    'www.example.org CNAME',
    'a.deep.name.example.org TXT',
    'x.wild.example.org A',
    'x.y.wild.example.org A',
    'there.wild.example.org TXT',
    'signed.example.org DS',
    '_s._tcp.example.org SRV',
    '_25._tcp.mail.example.org TLSA',
    'svc.example.org TYPE65',
    'caa.example.org CAA',
    'naptr.example.org NAPTR',
  ].map((one) => [one, /; fully validated/] as const),
  ...[
    'ns.example.org TXT',
    'none.example.org A',
    'deep.name.example.org A',
    'name.example.org TXT',
    'a.none.example.org A',
    'there.wild.example.org A',
    'x.there.wild.example.org A',
    'x.wild.example.org TXT',
    'wild.example.org A',
    '_tcp.example.org SRV',
  ].map((one) => [one, /; negative response, fully validated/] as const),
];

describe('zones checked by other programs', { skip }, () => {
  for (const how of ['plain', 'nsec', 'nsec3', 'opt-out'] as const satisfies readonly Signing[])
    test(`${how} zones pass all checkers`, { timeout: 120_000 }, async (t) => {
      const directory = scratch(t);
      const file = join(directory, 'db.example.org');
      writeFileSync(file, zoneText);
      const served = how === 'plain' ? file : sign(directory, 'example.org', file, how);
      const [port] = await freePorts(1);
      await ndots(
        t,
        directory,
        `example.org:${port} {\n bind 127.0.0.1\n file ${served}\n transfer {\n to *\n }\n}`,
      );
      const at = ['@127.0.0.1', '-p', String(port)];

      const printed = execFileSync(program, ['query', ...at, 'example.org', 'AXFR'], {
        encoding: 'utf8',
      });
      const copy = join(directory, 'copy');
      writeFileSync(copy, printed);
      const checked = spawnSync('named-checkzone', ['-i', 'local', 'example.org', copy], {
        encoding: 'utf8',
      });
      assert.equal(checked.status, 0, `${checked.stdout}${checked.stderr}\n${printed}`);
      assert.doesNotMatch(checked.stdout, /has no address records|ignoring|error/);

      // If both files are equal after BIND has written them in its own format, they have the same records.
      const canonical = (path: string): string =>
        execFileSync(
          'named-compilezone',
          ['-q', '-D', '-i', 'none', '-o', '-', 'example.org', path],
          { encoding: 'utf8' },
        );
      if (has('named-compilezone')) assert.equal(canonical(copy), canonical(served));
      if (how === 'plain') return;

      const verified = spawnSync('ldns-verify-zone', [copy], { encoding: 'utf8' });
      assert.equal(verified.status, 0, `${verified.stdout}${verified.stderr}`);
      assert.match(verified.stdout, /verified and complete/);

      const anchors = join(directory, 'anchors');
      writeFileSync(anchors, `trust-anchors {\n${anchorsIn(directory)}\n};\n`);
      for (const [question, good] of questions) {
        const said = spawnSync(
          'delv',
          [...at, '-a', anchors, '+root=example.org', ...question.split(' ')],
          { encoding: 'utf8' },
        );
        // If missing names may be unsigned, the proofs that they do not exist are considered unsigned too (RFC 5155,
        // section 9.2).
        const expected =
          how === 'opt-out' ? /fully validated|unsigned answer|response, unsigned/ : good;
        assert.match(said.stdout, expected, `${question}: ${said.stdout}${said.stderr}`);
      }
    });
});

/** The key-signing keys, as delv reads them. */
function anchorsIn(directory: string): string {
  return globSync(join(directory, 'K*.key'))
    .map((path) => /DNSKEY 257 3 13 (.*)$/m.exec(readFileSync(path, 'utf8'))?.[1])
    .filter((key) => key !== undefined)
    .map((key) => `"example.org." static-key 257 3 13 "${key}";`)
    .join('\n');
}

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { freePorts } from '../kit/free-ports.ts';
import { has, ndots, scratch } from '../kit/zone-transfers.ts';

/** Signed replies and transfers, verified by other programs. */

const name = 'key.example.';
const secret = Buffer.alloc(32, 9).toString('base64');
const hosts = 5000;
const zoneText = (serial: number): string =>
  `$TTL 300\n@ SOA ns host ${serial} 60 1 3600 60\n@ NS ns\nns A 192.0.2.1\n` +
  Array.from({ length: hosts }, (_, i) => `host${i} A 10.0.0.1\n`).join('');

describe('signed replies', () => {
  test(
    'kdig and dig verify the signatures of ndots',
    { skip: has('kdig') && has('dig') ? false : 'needs kdig and dig', timeout: 60_000 },
    async (t) => {
      const directory = scratch(t);
      const file = join(directory, 'db.example.org');
      writeFileSync(file, zoneText(7));
      const [port] = await freePorts(1);
      await ndots(
        t,
        directory,
        `example.org:${port} {\n bind 127.0.0.1\n tsig {\n secret ${name} ${secret}\n require all\n }\n file ${file}\n transfer {\n to *\n }\n}`,
      );
      const at = ['@127.0.0.1', '-p', String(port)];
      for (const algorithm of [
        'hmac-sha1',
        'hmac-sha224',
        'hmac-sha256',
        'hmac-sha384',
        'hmac-sha512',
      ]) {
        const key = `${algorithm}:${name}:${secret}`;
        const query = execFileSync('kdig', [...at, '-y', key, 'host1.example.org', 'A'], {
          encoding: 'utf8',
        });
        assert.match(query, /10\.0\.0\.1/);
        assert.doesNotMatch(query, /WARNING|\bERROR\b|failed/);
        const whole = execFileSync('kdig', [...at, '-y', key, 'example.org', 'AXFR'], {
          encoding: 'utf8',
        });
        assert.ok(whole.split('\n').length > hosts, whole.slice(-300));
        assert.doesNotMatch(whole, /WARNING|\bERROR\b|failed/);
        const dig = spawnSync('dig', [...at, '-y', key, 'example.org', 'AXFR'], {
          encoding: 'utf8',
        });
        assert.match(dig.stdout, /XFR size: 500\d records/);
        assert.doesNotMatch(dig.stdout + dig.stderr, /verify failure|BADSIG|Couldn't verify/i);
      }
      const refused = execFileSync('kdig', [...at, 'host1.example.org', 'A'], { encoding: 'utf8' });
      assert.match(refused, /status: REFUSED/);
      const unknown = spawnSync(
        'dig',
        [...at, '-y', `hmac-sha256:other.:${secret}`, 'host1.example.org'],
        { encoding: 'utf8' },
      );
      assert.match(unknown.stdout + unknown.stderr, /BADKEY/);
      const md5 = spawnSync(
        'dig',
        [...at, '-y', `hmac-md5:${name}:${secret}`, 'host1.example.org'],
        { encoding: 'utf8' },
      );
      assert.match(md5.stdout + md5.stderr, /NOTAUTH|BADKEY/);
    },
  );
});

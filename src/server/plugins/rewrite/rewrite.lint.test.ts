import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintTexts } from '../../../../test/kit/lint-text.ts';

async function told(line: string): Promise<readonly string[]> {
  const Corefile = `.:53 {\n ${line}\n forward . 10.0.0.2\n}\n`;
  const { findings } = await lintTexts({ files: { Corefile } });
  return findings
    .filter(({ code }) => code === 'CF60')
    .map(({ spot, severity, text }) => `${spot.line} ${severity}: ${text}`);
}

describe('rewrite type', () => {
  test('to another type returns records that the client did not request', async () => {
    const found = ['2 error: queries for AAAA are answered with A records'];
    assert.deepEqual(await told('rewrite type AAAA A'), found);
    assert.deepEqual(await told('rewrite stop type aaaa a'), found);
    assert.deepEqual(await told('rewrite continue type TYPE28 A'), found);
    assert.deepEqual(await told('rewrite stop {\n type AAAA A\n }'), found);
    assert.deepEqual(await told('rewrite type A AAAA'), [
      '2 error: queries for A are answered with AAAA records',
    ]);
    assert.deepEqual(await told('rewrite type HTTPS A'), [
      '2 error: queries for HTTPS are answered with A records',
    ]);
  });

  test('is valid for ANY, to CNAME, to the same type and for names', async () => {
    for (const line of [
      'type ANY HINFO',
      'type A CNAME',
      'type A A',
      'name type.example a.example',
    ])
      assert.deepEqual(await told(`rewrite ${line}`), [], line);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintTexts } from '../../../../test/kit/lint-text.ts';

/** Rules about anything between a pod and DNS, which are its dnsConfig and policies. */

async function told(text: string): Promise<readonly string[]> {
  const { findings } = await lintTexts({ files: { 'a.yaml': text } });
  return findings.map(({ code, severity, text: what }) => `${code} ${severity}: ${what}`);
}

const pod = (value: string): string =>
  `kind: Pod\nmetadata: { name: web }\nspec:\n  dnsConfig: { options: [{ name: ndots, value: ${value} }] }\n  containers: [{ name: c, image: debian }]\n`;

describe('an option of a dnsConfig', () => {
  test('that is a number of YAML is refused by the API server, which takes text', async () => {
    assert.deepEqual(await told(pod('2')), [
      'CF45 error: the value of ndots is a number, but the API server accepts only text',
    ]);
  });

  test('that is a number in quotes is good, and so is one without a value', async () => {
    assert.deepEqual(await told(pod('"2"')), []);
    assert.deepEqual(await told(pod('"2"').replace('ndots, value: "2"', 'use-vc')), []);
  });
});

const policy = (...ports: readonly string[]): string =>
  `kind: NetworkPolicy\nmetadata: { name: dns }\nspec:\n  policyTypes: [Egress]\n  egress:\n${ports
    .map((port) => `    - ports: [${port}]\n`)
    .join('')}`;

describe('a NetworkPolicy', () => {
  test('with port 53 and no protocol lets TCP pass alone, so every query over UDP is dropped', async () => {
    assert.deepEqual(await told(policy('{ port: 53 }')), [
      'CF41 error: dns allows DNS only over TCP',
    ]);
  });

  test('that lets UDP pass elsewhere, or names no port, is good', async () => {
    assert.deepEqual(await told(policy('{ port: 53 }', '{ port: 53, protocol: UDP }')), []);
    assert.deepEqual(await told(policy('{ port: 53 }').concat('    - {}\n')), []);
    assert.deepEqual(await told(policy('{ port: 443 }')), []);
  });
});

/** Plays stories from files: the example, and steps that are not used in other tests. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StoryOutcome } from '../../src/tools/lab/story.ts';
import { broken, noLab, runLab } from '../kit/lab.ts';

const skip =
  noLab ?? (spawnSync('conntrack', ['--version']).status === 0 ? false : 'needs conntrack');

for (const mode of ['iptables', 'nftables'])
  test(`the example goes as documented, with ${mode}`, { skip }, async () => {
    const file = 'examples/lab/story.yaml';
    const { stdout, code, stderr } = await runLab('run', '-f', file, '-o', 'json', '-m', mode);
    assert.equal(code, 0, stdout || stderr);
    const [outcome] = JSON.parse(stdout) as StoryOutcome[];
    assert.deepEqual(broken(outcome!), []);
  });

const story = `
story: cut-off
cluster: { pods: [{ name: client }] }
acts:
  - flaw: the pod is cut off, and the API server tells nothing more
    steps:
      - api: freeze
      - apply:
          - { apiVersion: v1, kind: Service, metadata: { name: fresh, namespace: default }, spec: { clusterIP: 10.96.5.5, ports: [{ port: 80 }] } }
      - link: { of: client, state: down }
      - as: cut
        query: { from: client, name: fresh.default.svc.cluster.local., wait: 300ms }
    expect: [{ value: cut.replied, is: 0 }]
  - cure: both are back
    steps:
      - link: { of: client, state: up }
      - api: start
      - as: back
        waitUntil: { from: client, name: fresh.default.svc.cluster.local., address: 10.96.5.5 }
      - as: six
        exec: { in: client, command: ip -6 route show default }
    expect:
      - { value: back.reached, is: true }
      - { value: six.output, contains: via fe80::1 }
`;

test('a link that was cut is as before when it is restored', { skip: noLab ?? false }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-story-test-'));
  try {
    const file = join(directory, 'story.yaml');
    writeFileSync(file, story);
    const { stdout, code, stderr } = await runLab('run', '-f', file, '-o', 'json');
    assert.equal(code, 0, stdout || stderr);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

/** What the Dockerfiles have to say, whatever they build. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parseDockerfile } from './kit/dockerfile.ts';

const files = ['deploy/Dockerfile', 'deploy/node-cache/Dockerfile'];
const argument = (text: string): string | undefined => /^ARG NODE_IMAGE=(.*)$/m.exec(text)?.[1];

describe('the Dockerfiles', () => {
  const texts = files.map((file) => readFileSync(file, 'utf8'));

  test('name one base image, for every stage, in one argument', () => {
    const [base = ''] = texts.map(argument);
    assert.match(base, /^node:26-slim(?:@sha256:[0-9a-f]{64})?$/);
    for (const text of texts) {
      assert.equal(argument(text), base);
      for (const [line] of text.matchAll(/^FROM .*/gm)) assert.match(line, /\$\{NODE_IMAGE\}/);
      for (const stage of parseDockerfile(text)) assert.equal(stage.base, base);
    }
  });

  test('are not released on a base image without a digest', () => {
    const workflow = readFileSync('.github/workflows/release.yaml', 'utf8');
    const [, pattern = ''] = /grep -qE '(.*)' "\$FILE"/.exec(workflow) ?? [];
    const isPinned = new RegExp(pattern, 'm');
    assert.doesNotMatch('ARG NODE_IMAGE=node:26-slim\n', isPinned);
    assert.match(`ARG NODE_IMAGE=node:26-slim@sha256:${'a1'.repeat(32)}\n`, isPinned);
    for (const file of files) assert.ok(workflow.includes(`- file: ${file}\n`), file);
    assert.ok(workflow.indexOf('grep -qE') < workflow.indexOf('docker/build-push-action'));
  });

  test('give the runtime no capability that must be effective', () => {
    for (const text of texts) assert.doesNotMatch(text, /setcap \S*[=+]\w*e/);
  });
});

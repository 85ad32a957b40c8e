/** Requirements for all Dockerfiles. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parseDockerfile, variablesOf } from './kit/dockerfile.ts';

const files = ['deploy/Dockerfile', 'deploy/node-cache/Dockerfile'];
const argument = (text: string): string | undefined => /^ARG NODE_IMAGE=(.*)$/m.exec(text)?.[1];

describe('the Dockerfiles', () => {
  const texts = files.map((file) => readFileSync(file, 'utf8'));

  test('name one base image, for every stage, in one argument', () => {
    const [base = ''] = texts.map(argument);
    assert.match(base, /^node:26-slim(?:@sha256:[0-9a-f]{64})?$/);
    for (const text of texts) {
      assert.equal(argument(text), base);
      const stages = parseDockerfile(text);
      const own = new Set(['scratch', ...stages.map(({ name }) => name)]);
      for (const stage of stages) if (!own.has(stage.base)) assert.equal(stage.base, base);
      for (const [line] of text.matchAll(/^FROM .*node.*/gim))
        assert.match(line, /\$\{NODE_IMAGE\}/);
    }
  });

  test('are not released on a base image without a digest', () => {
    const workflow = readFileSync('.github/workflows/release.yaml', 'utf8');
    const [, pattern = ''] = /grep -qE '(.*)' "\$FILE"/.exec(workflow) ?? [];
    const isPinned = new RegExp(pattern, 'm');
    assert.doesNotMatch('ARG NODE_IMAGE=node:26-slim\n', isPinned);
    assert.match(`ARG NODE_IMAGE=node:26-slim@sha256:${'a1'.repeat(32)}\n`, isPinned);
    for (const [at, file] of files.entries()) {
      const targets = workflow.matchAll(new RegExp(`- file: ${file}\\n +target: (\\S+)`, 'g'));
      const stages = parseDockerfile(texts[at]!).map(({ name }) => name);
      const released = [...targets].map(([, target = '']) => target);
      assert.deepEqual(released, file === files[0] ? ['server', 'tools'] : ['node-cache']);
      for (const target of released) assert.ok(stages.includes(target), target);
    }
    assert.ok(workflow.indexOf('grep -qE') < workflow.indexOf('docker/build-push-action'));
  });

  test('set the memory variables, two of them on one line', () => {
    for (const text of texts) {
      // The last stage may inherit from its base stage.
      const steps = parseDockerfile(text)
        .slice(-3)
        .filter(({ name }) => name !== 'tools')
        .flatMap((stage) => stage.steps.filter(({ name }) => name === 'ENV'));
      const { PATH: _, ...variables } = Object.assign({}, ...steps.map(variablesOf)) as Record<
        string,
        string
      >;
      assert.deepEqual(variables, {
        NODE_OPTIONS: '--max-semi-space-size=2 --max-old-space-size=192',
        MALLOC_ARENA_MAX: '2',
        MALLOC_MMAP_THRESHOLD_: '131072',
      });
    }
  });

  test('give the tools image the heap that bin/ndots gives doctor', () => {
    const [, limit = ''] =
      /doctor\) heap=\$\{heap:\+(\S+)\}/.exec(readFileSync('bin/ndots', 'utf8')) ?? [];
    const tools = parseDockerfile(texts[0]!).find(({ name }) => name === 'tools')!;
    const steps = tools.steps.filter(({ name }) => name === 'ENV');
    const { NODE_OPTIONS = '' } = Object.assign({}, ...steps.map(variablesOf)) as Record<
      string,
      string
    >;
    assert.ok(NODE_OPTIONS.split(' ').includes(limit), NODE_OPTIONS);
  });

  test('give the runtime no capability that must be effective', () => {
    for (const text of texts) assert.doesNotMatch(text, /setcap \S*[=+]\w*e/);
  });
});

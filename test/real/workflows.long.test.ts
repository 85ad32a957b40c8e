/** Checks the GitHub workflows with actionlint and, where that is not enough, with its own tests. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { goProgram, noGo } from '../kit/go-program.ts';

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly steps: readonly {
          readonly run?: string;
          readonly uses?: string;
          readonly with?: object;
        }[];
      }
    >
  >;
}

const files = globSync('.github/workflows/*.yaml');
const read = (file: string): Workflow => parse(readFileSync(file, 'utf8')) as Workflow;

describe('workflows', () => {
  test('are valid for GitHub', { skip: noGo() ?? false }, () => {
    const actionlint = goProgram(
      'actionlint',
      'github.com/rhysd/actionlint/cmd/actionlint',
      'v1.7.7',
    );
    const { status, stdout, stderr } = spawnSync(actionlint, files, { encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  });

  for (const file of files) {
    test(`${file} may read the repository and no more, and leaves no token in the checkout`, () => {
      const { permissions, jobs } = read(file);
      assert.deepEqual(permissions, { contents: 'read' });
      for (const { steps } of Object.values(jobs))
        for (const step of steps)
          if (step.uses?.startsWith('actions/checkout'))
            assert.deepEqual(step.with, { 'persist-credentials': false });
    });

    test(`the scripts and commands that ${file} runs are there`, () => {
      const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
        readonly scripts: Readonly<Record<string, string>>;
      };
      const text = readFileSync(file, 'utf8');
      for (const [, name = ''] of text.matchAll(/npm run ([a-z:]+)/g))
        assert.ok(scripts[name], name);
      for (const [, path = ''] of text.matchAll(/\bnode (tools\/\S+)/g))
        assert.ok(readFileSync(path).length > 0, path);
    });
  }

  test('every image of the deployment is released, with its tag', () => {
    const steps = Object.values(read('.github/workflows/release.yaml').jobs).flatMap(
      (job) => job.steps,
    );
    const tags = steps.flatMap(({ with: given }) =>
      'tags' in (given ?? {}) ? [(given as { readonly tags: string }).tags] : [],
    );
    assert.ok(tags.some((each) => /:\$\{\{ steps\.tag\.outputs\.plain \}\}$/m.test(each)));
    assert.ok(steps.some(({ run }) => run?.includes('plain=${GITHUB_REF_NAME#v}')));
    const text = readFileSync('.github/workflows/release.yaml', 'utf8');
    for (const file of globSync('deploy/**/Dockerfile'))
      assert.ok(text.includes(`file: ${file}\n`), file);
  });
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';

/** A directory that contains ndots under all of its names. */
const directory = mkdtempSync(join(tmpdir(), 'ndots-completion-'));
for (const name of ['ndots', 'kubectl-ndots', 'kubectl_complete-ndots'])
  symlinkSync(resolve('bin/ndots'), join(directory, name));
after(() => rmSync(directory, { recursive: true }));

const env = { ...process.env, PATH: `${directory}:${process.env['PATH'] ?? ''}` };

function run(
  program: string,
  ...words: string[]
): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(program, words, {
    encoding: 'utf8',
    env,
    input: '',
  });
  return { code: status, out: stdout ?? '', err: stderr ?? '' };
}

function absent(shell: string, t: TestContext): boolean {
  if (run('sh', '-c', `command -v ${shell}`).code === 0) return false;
  t.skip(`no ${shell} here`);
  return true;
}

/** Command lines with their expected completions. */
const cases: [line: string, words: string[]][] = [
  ['ndots tra', ['trace']],
  ['ndots trace --cgo --resolv-c', ['--resolv-conf']],
  ['ndots trace --client glibc@2.36,mus', ['musl']],
  ['ndots trace --output=js', ['json']],
  ['ndots query example.com +norec', ['+norecurse']],
];

describe('bash', () => {
  for (const [line, words] of cases) {
    test(`${line}…`, (t) => {
      if (absent('bash', t)) return;
      // Bash splits words at = and @, and inserts only the last part of a completion.
      const parts = line.split(/([=@,]|\s+)/).filter((part) => part.trim() !== '');
      const list = parts.map((part) => `'${part}'`).join(' ');
      const { out, err } = run(
        'bash',
        '-c',
        `source <(ndots completion bash); COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=(${list}); COMP_CWORD=${parts.length - 1}; compopt() { :; }; _ndots ndots; printf '%s\\n' "\${COMPREPLY[@]}"`,
      );
      for (const word of words)
        assert.ok(
          out.split('\n').some((offered) => offered === word || offered.endsWith(`,${word}`)),
          `${out}${err}`,
        );
    });
  }
});

describe('fish', () => {
  for (const [line, words] of cases) {
    test(`${line}…`, (t) => {
      if (absent('fish', t)) return;
      const { out, err } = run(
        'fish',
        '-c',
        `ndots completion fish | source; complete -C '${line}'`,
      );
      const offered = out.split('\n').map((each) => each.split('\t')[0] ?? '');
      for (const word of words)
        assert.ok(
          offered.some((each) => each === word || (/[=,]/.test(each) && each.endsWith(word))),
          `${out}${err}`,
        );
    });
  }
});

describe('zsh', () => {
  for (const [line, words] of cases) {
    test(`${line}…`, (t) => {
      if (absent('zsh', t)) return;
      // Types a line and a tab into a terminal, then returns the screen.
      const { out, err } = run(
        'zsh',
        '-fc',
        `zmodload zsh/zpty
zpty z zsh -fi
zpty -w z "PS1=; autoload -Uz compinit; compinit -u -d ${directory}/zcompdump; source <(ndots completion zsh); setopt no_beep; echo re''ady"
zpty -r -m z line '*ready*'
zpty -w -n z '${line}'$'\\t'
repeat 100; do sleep 0.1; zpty -r -t z part && all+=$part; [[ $all == *'${words[0] ?? ''}'* ]] && break; done
print -r -- "$all"
zpty -d z`,
      );
      for (const word of words) assert.ok(out.includes(word), `${out}${err}`);
    });
  }
});

describe('kubectl', () => {
  test('runs kubectl_complete-ndots and reads its output', (t) => {
    if (absent('kubectl', t)) return;
    const { out, err } = run('kubectl', '__complete', 'ndots', 'trace', '--resolv');
    assert.match(out, /^--resolv-conf\t/m, err);
    assert.match(out, /^:4$/m);
  });

  test('uses the name that it was called by: kubectl ndots', (t) => {
    if (absent('kubectl', t)) return;
    assert.match(run('kubectl', 'ndots', 'trace', '--help').out, /^Usage: kubectl ndots trace/m);
    const wrong = run('kubectl', 'ndots', 'trace', '--nonsense');
    assert.match(wrong.err, /kubectl ndots trace --help shows the options\./);
  });

  test('the script for krew does the same', () => {
    assert.match(
      run('ndots', 'completion', 'kubectl').out,
      /^exec kubectl ndots __complete "\$@"$/m,
    );
  });
});

/** Tests that problems are printed with their code, which users can look up in docs/problems.md. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Problem } from '../../server/base/problem.ts';
import { problemText, tellProblems } from './problem-text.ts';

describe('a problem printed for people', () => {
  const missing = { code: 'unreadable-file', text: 'a.pcap: cannot read the capture' };

  test('ends with its code', () => {
    assert.equal(
      problemText(new Problem(missing)),
      'a.pcap: cannot read the capture [unreadable-file]',
    );
  });

  test('has the code on the first line, above place, hint and fix', () => {
    const place = { file: 'Corefile', line: 3, column: 0 };
    assert.equal(
      problemText(new Problem({ ...missing, place, hint: 'no such file', remedy: 'ls -l a.pcap' })),
      'a.pcap: cannot read the capture [unreadable-file]\n  at Corefile:3\n  no such file\n  ls -l a.pcap',
    );
  });

  test('has no code if the command line is wrong, because --help explains more', () => {
    assert.equal(problemText(new Problem({ code: 'usage', text: 'which name?' })), 'which name?');
  });

  test('names the verb, and each problem has its own line', () => {
    const written: string[] = [];
    tellProblems('doctor', [new Problem(missing), new Problem({ code: 'etcd', text: 'b' })], {
      err: (text) => written.push(text),
    });
    assert.deepEqual(written, [
      'ndots doctor: a.pcap: cannot read the capture [unreadable-file]\n',
      'ndots doctor: b [etcd]\n',
    ]);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PacketRow } from '../../../tools/lab/capture.ts';
import type { Act, StoryOutcome } from '../../../tools/lab/story.ts';
import { equal } from '../../../tools/lab/story.ts';
import { labText } from './lab-text.ts';

const act = (kind: Act['kind'], title: string, queries: number): Act => ({
  kind,
  title,
  command: 'getent ahosts a.example',
  packets: [],
  facts: [equal('queries', queries, queries), equal('the name is found', 'yes', 'yes')],
});

const outcome = (acts: readonly Act[], trigger = 'a name is looked up'): StoryOutcome => ({
  story: { name: 'x', title: 'a story', source: 'a test', preconditions: [], trigger },
  how: 'model',
  server: 'ndots',
  acts,
  tookMs: 1,
});

const told = (of: StoryOutcome): string => labText([of], { colour: false, columns: 80 });

describe('a story as text', () => {
  test('numbers that a fix changes are aligned, with bars', () => {
    const text = told(
      outcome([act('flaw', 'five search domains', 12), act('cure', 'a final dot', 2)]),
    );
    assert.match(text, /^ +queries +12  █{24}  five search domains\n +2  █{4} +a final dot$/m);
  });

  test('names and answers of packets are complete on any terminal width', () => {
    const name = 'www.google.com.default.svc.cluster.local.';
    const answer = 'NOERROR 173.194.76.103 173.194.76.104 173.194.76.105';
    const row: PacketRow = {
      ...{ atMs: 5, from: 'client.port1', to: 'dns', text: `A? ${name}`, isOut: true },
      ...{ isQuery: true, kind: 'query', protocol: 'udp', name, type: 'A' },
    };
    const packets: readonly PacketRow[] = [row, { ...row, text: answer, isOut: false }];
    const of = outcome([{ ...act('flaw', 'a', 1), packets }]);
    for (const columns of [40, 60, 80]) {
      const text = labText([of], { colour: false, columns });
      const words = text.replaceAll(/\s+/g, '');
      assert.ok(words.includes(name) && words.includes(answer.replaceAll(' ', '')), text);
      for (const line of text.split('\n').filter((each) => /\d|google/.test(each)))
        assert.ok(line.length <= columns, line);
    }
  });

  test('numbers that are equal in all acts are not compared', () => {
    assert.doesNotMatch(told(outcome([act('flaw', 'a', 12), act('cure', 'b', 12)])), /█/);
    assert.doesNotMatch(told(outcome([act('flaw', 'a', 12)])), /█/);
  });

  test('a result of several lines stays in its place', () => {
    const fact = equal('output', 'one\ntwo', 'one\ntwo');
    const text = told(outcome([{ ...act('flaw', 'a', 1), facts: [fact] }]));
    assert.match(text, /^ {2}✓ output: one\n {4}two$/m);
  });

  test('a story without a description of the events has no line for it', () => {
    assert.doesNotMatch(told(outcome([act('flaw', 'a', 1)], '')), /when/);
  });
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { doctor } from './doctor.ts';

/** Recorded captures and the fault in each one: `test/captures/*.json`. */
interface Truth {
  readonly files: readonly string[];
  readonly truth: string;
  /** Code of the first finding. */
  readonly first?: string;
  readonly without?: readonly string[];
  /** Patterns that the report must match. */
  readonly says?: readonly string[];
  /** True if the report must not find anything wrong with DNS. */
  readonly well?: boolean;
  /** True if packets that appear in several files must count once. */
  readonly fewerThanSum?: boolean;
}

const directory = new URL('../../../../test/captures/', import.meta.url);
const truths = ['truths.json', 'wrong-answers.json'].flatMap(
  (file) => JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as readonly Truth[],
);

async function report(files: readonly string[]): Promise<string> {
  const paths = files.map((file) => new URL(`${file}.pcap.gz`, directory).pathname);
  const { out } = await runCommand(doctor, [...paths, '--fail-on', 'never'], {}, { columns: 4000 });
  return out;
}

const queries = (out: string): number => Number(/^\d+/.exec(out)![0]);

describe('doctor on recorded captures', () => {
  for (const truth of truths)
    test(`${truth.files.join(' and ')}: ${truth.truth}`, async () => {
      const out = await report(truth.files);
      const codes = [...out.matchAll(/^[✕!·] (ND\d+)/gm)].map(([, code]) => code);
      if (truth.first !== undefined) assert.equal(codes[0], truth.first, out);
      for (const code of truth.without ?? []) assert.ok(!codes.includes(code), out);
      for (const pattern of truth.says ?? []) assert.match(out, new RegExp(pattern));
      if (truth.well === true) {
        assert.match(out, /✓ (?:Not DNS|Every query got a reply)/);
        assert.doesNotMatch(out, /^[✕!]/m);
      } else assert.doesNotMatch(out, /Not DNS/);
      if (truth.fewerThanSum === true) {
        const alone = await Promise.all(truth.files.map((file) => report([file])));
        const sum = alone.reduce((all, each) => all + queries(each), 0);
        assert.ok(queries(out) < sum, `${queries(out)} of ${sum}`);
        assert.ok(queries(out) >= Math.max(...alone.map(queries)));
      }
      assert.doesNotMatch(out, /of 0 \(|0 of 0/);
    });
});

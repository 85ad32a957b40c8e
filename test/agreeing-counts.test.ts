/** Compares the counts of `doctor`, `capture`, `top` and `plan` for the same captures. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { capture } from '../src/faces/cli/capture/capture.ts';
import { doctor } from '../src/faces/cli/doctor/doctor.ts';
import { plan } from '../src/faces/cli/plan/plan.ts';
import { top } from '../src/faces/cli/top/top.ts';
import type { WorkloadPlan } from '../src/faces/cli/plan/plan-workloads.ts';
import type { NowView } from '../src/tools/watch/view.ts';
import { runCommand } from './kit/trace-command.ts';

/** The captures at one client, which one verb or another would otherwise count differently. */
const captures = globSync(['examples/captures/*.pcap*', 'test/captures/*.client.pcap.gz']);

/** The number before a word: `86` in `86 queries`. */
function numberBefore(word: RegExp, text: string): string {
  return new RegExp(`(\\d+) (?:${word.source})`).exec(text)?.[1] ?? '0';
}

const waiting = /more still waiting/;

for (const path of captures)
  test(`doctor, capture and top count the same in ${path}`, async () => {
    const doctored = await runCommand(doctor, [path]);
    const captured = await runCommand(capture, [path]);
    // The lines above the one that counts clients and servers.
    const [head = ''] = doctored.out.split(/\n\d+ clients?/);
    const flat = head.replaceAll(/\s+/g, ' ');
    for (const word of [/quer(?:y|ies)/, /lookups?/, /without reply/, waiting])
      assert.equal(numberBefore(word, captured.err), numberBefore(word, flat), word.source);
    const shown = await runCommand(top, [path, '--once', '-o', 'json']);
    const view = JSON.parse(shown.out) as Readonly<Record<string, number>>;
    const of = (word: RegExp): number => Number(numberBefore(word, flat));
    assert.equal(view['lookups'], of(/lookups?/));
    // top presumes a query to be lost after 5 s, although a capture may end before its late reply.
    const presumed = of(waiting) - view['waiting']!;
    assert.ok(presumed >= 0);
    assert.equal(view['queries'], of(/quer(?:y|ies)/) + presumed);
    assert.equal(view['lost'], of(/without reply/) + presumed);
    assert.equal(`${view['slowLookups']}`, numberBefore(/took a second or more/, flat));
  });

test('top and plan compute the same savings', async () => {
  const path = 'test/captures/validator-clock.client.pcap.gz';
  const shown = await runCommand(top, [path, '--once', '-o', 'json']);
  const planned = await runCommand(plan, [path, '-c', 'glibc', '-o', 'json']);
  const { waste } = JSON.parse(shown.out) as Pick<NowView, 'waste'>;
  const [{ best, plans } = { best: null, plans: [] }] = JSON.parse(
    planned.out,
  ) as readonly WorkloadPlan[];
  const queries = (ndots: number | null): number | undefined =>
    plans[0]?.choices.find((each) => each.ndots === ndots)?.queries;
  const of = waste.workloads.rows[0]?.plan;
  assert.deepEqual([of?.ndots, of?.queriesNow, of?.queriesThen], [best, queries(5), queries(best)]);
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readEvents, type Event, type SetupEvent } from '../coredns/events.ts';
import { byHandler, replay, type Outcome } from '../coredns/exchanges.ts';
import {
  knownAs,
  knownExchanges,
  knownServers,
  knownSetups,
  type Known,
} from '../coredns/known.ts';
import { copyModule, noModule, recordTests, serverTests } from '../coredns/module.ts';
import { setUp } from '../coredns/setups.ts';

/**
 * CoreDNS's own tests, run against ndots. Plugin tests are run in a copy of the module that records their setup, their
 * queries and CoreDNS's results, and ndots then replays them. Whole-server tests run unchanged, with ndots processes as
 * the servers. All differences must be listed in test/coredns/known.ts.
 */
describe("CoreDNS's own tests", { skip: noModule() ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-coredns-tests-'));
  after(() => rmSync(directory, { recursive: true, force: true }));

  describe('of plugins', () => {
    let events: Event[][] = [];

    before(async () => {
      const copy = join(directory, 'plugins');
      await copyModule(copy);
      await recordTests(copy, join(directory, 'events'));
      events = readEvents(join(directory, 'events'));
    });

    test('a directive is accepted or refused as by CoreDNS', async (context) => {
      const setups = events.flat().filter((event) => event.kind === 'setup' && event.plugin !== '');
      const count = new Count();
      for (const event of setups as SetupEvent[]) {
        const { refused, problems } = await setUp(event);
        const text = `${event.plugin} ${event.test}: ${JSON.stringify(event.input)}`;
        if (refused === event.refused) count.same++;
        else
          count.take(
            knownAs(knownSetups, event.plugin, event.test, [event.input]),
            `${text}\n  CoreDNS: ${event.error ?? 'taken'}\n  ndots: ${problems.join('; ') || 'taken'}`,
          );
      }
      count.tell(context);
    });

    test('a query is answered as by CoreDNS', async (context) => {
      const count = new Count();
      for (const asked of events.flatMap(byHandler))
        for (const outcome of await replay(asked)) takeOutcome(count, outcome);
      count.tell(context);
    });
  });

  test('of whole servers pass', async (context) => {
    const copy = join(directory, 'servers');
    await copyModule(copy);
    const program = join(import.meta.dirname, '../../bin/ndots');
    const tests = await serverTests(copy, program);
    const count = new Count();
    for (const name of tests.names) {
      const { passed, ours, output } = await tests.run(name);
      if (!ours) continue;
      if (passed) count.same++;
      else count.take(knownAs(knownServers, null, name, [output]), `${name}\n${output}`);
    }
    count.tell(context);
  });
});

function takeOutcome(count: Count, { event, corefile, differences, inapplicable }: Outcome): void {
  if (inapplicable !== null) count.inapplicable++;
  else if (differences.length === 0) count.same++;
  else
    count.take(
      knownAs(knownExchanges, event.plugin, event.test, differences),
      `${event.plugin} ${event.test}\n${corefile}${differences.join('\n')}`,
    );
}

class Count {
  same = 0;
  inapplicable = 0;
  intended = 0;
  readonly #wrong: string[] = [];

  take(known: Known | null, text: string): void {
    if (known?.inapplicable !== undefined) this.inapplicable++;
    else if (known?.intended !== undefined) this.intended++;
    else this.#wrong.push(text);
  }

  /** Reports the counts and fails if there is an unknown difference. */
  tell(context: { diagnostic(text: string): void }): void {
    const { same, intended, inapplicable } = this;
    context.diagnostic(
      `${same} the same, ${intended} differ on purpose, ${inapplicable} say nothing here, ${this.#wrong.length} differ`,
    );
    assert.equal(this.#wrong.join('\n\n'), '');
    assert.ok(same > 0, 'nothing was compared');
  }
}

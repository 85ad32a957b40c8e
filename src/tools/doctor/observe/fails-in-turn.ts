/** Servers of which one fails for names that another one answers, by turns. */
import { commonZone } from '../../../server/wire/within-zone.ts';
import { listed } from '../texts.ts';
import { FAILS_IN_TURN } from '../thresholds/errors.ts';
import { MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { failures } from './failing-names.ts';
import type { NameView } from './name-view.ts';
import { addOutcomes, answered, noOutcomes, type Outcomes } from './outcomes.ts';

const WHY =
  'A secondary server whose copy of the zone has expired because it cannot reach its primary server fails like this.';

/** Texts about the server that fails; null: names fail for another reason. */
export function failsInTurn(
  names: readonly NameView[],
  servfail: number,
): { readonly title: string; readonly seen: string; readonly fix: string } | null {
  const mixed = names.filter(
    ({ outcomes, denial }) =>
      failures(outcomes) >= MIN_CASES &&
      outcomes.found + outcomes.nodata + outcomes.nxdomain >= MIN_CASES &&
      // Failures in a row are a time, and not one of several servers.
      denial !== null &&
      denial.count < MOST * failures(outcomes),
  );
  const count = mixed.reduce((sum, { outcomes }) => sum + failures(outcomes), 0);
  if (mixed.length < FAILS_IN_TURN.names || count < MOST * servfail) return null;
  const zone = mixed.map(({ name }) => name).reduce(commonZone);
  const byServer = new Map<string, Outcomes>();
  for (const { servers } of mixed)
    for (const [address, outcomes] of servers) {
      const sum = byServer.get(address) ?? noOutcomes();
      addOutcomes(sum, outcomes);
      byServer.set(address, sum);
    }
  const all = [...byServer];
  const failing = all.filter(([, outcomes]) => failures(outcomes) === answered(outcomes));
  const fine = all.filter(([, outcomes]) => failures(outcomes) === 0);
  const where = zone.split('.').length > 2 ? `the zone ${zone.slice(0, -1)}` : 'these names';
  if (failing.length > 0 && fine.length > 0 && failing.length + fine.length === all.length) {
    const [bad, good] = [failing, fine].map((each) => listed(each.map(([address]) => address)));
    const verbOf = ({ length }: typeof all): string => (length === 1 ? 'answers' : 'answer');
    return {
      title: `${bad} fails for names that another server answers`,
      seen: `${bad} ${verbOf(failing)} every query for ${where} with an error, while ${good} ${verbOf(fine)} the same names. ${WHY}`,
      fix: `Check whether ${bad} has loaded ${where}, and whether it reaches the primary server (BIND: rndc zonestatus; its log names failed transfers).`,
    };
  }
  if (all.length !== 1) return null;
  const [address] = all[0]!;
  return {
    title: `One of the servers behind ${address} fails for names that another one answers`,
    seen: `The same names get an error at some times and an answer at others, by turns, so the servers behind ${address} most likely differ: one of them cannot answer for ${where}. ${WHY}`,
    fix: `Query each server behind ${address} at its own address. Check whether the one that fails has loaded ${where}, and whether it reaches the primary server or its upstream.`,
  };
}

/**
 * `ndots plan`: what a lower `ndots` or final dots save, for the names that were looked up, and
 * what would break.
 */
import { addressOwners } from './capture-names.ts';
import { EXIT, type Command } from './command.ts';
import { readNames } from './plan-names.ts';
import { parsePlanOptions } from './plan-options.ts';
import { printPatches, printPlans } from './plan-text.ts';
import { WorkloadPlanning, type WorkloadPlan } from './plan-workloads.ts';
import { podSource } from './trace-pod.ts';

/** The verb `plan`. */
export const plan: Command = {
  name: 'plan',
  async run(words, io) {
    const options = parsePlanOptions(words);
    const seen = await readNames(options.files, io);
    const told = new Set<string>();
    // The manifests are read for pods and for addresses: what is wrong with them is told once.
    const note = (text: string): void => {
      if (!told.has(text)) io.err(`ndots plan: ${text}\n`);
      told.add(text);
    };
    const source =
      options.manifests === null && !options.cluster
        ? null
        : await podSource(options, io, (problem) => note(problem.print()));
    if (source === null && seen.listed.size > 0)
      note(
        'which services there are is not known (--cluster, --manifests): names of the list with a dot are taken as names outside of the cluster',
      );
    try {
      const owners = await addressOwners(options, io, note);
      const found = await new WorkloadPlanning(options, seen, source, note).all(owners);
      if (found.length === 0) {
        note('nobody looked a name up in what was read');
        return EXIT.failed;
      }
      if (options.output === 'json') io.out(`${JSON.stringify(found, null, 2)}\n`);
      else io.out(options.output === 'patch' ? printPatches(found) : printPlans(found, io));
      return found.some(saves) ? EXIT.no : EXIT.ok;
    } finally {
      source?.close();
    }
  },
};

function saves({ best, plans }: WorkloadPlan): boolean {
  return best !== null || plans.some(({ dotted }) => dotted.length > 0);
}

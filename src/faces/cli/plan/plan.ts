/**
 * `ndots plan`: computes how many queries a lower `ndots` or trailing dots would save for the names in a capture, and
 * which names would break.
 */
import { didYouMean, type Problem } from '../../../server/base/problem.ts';
import { addressOwners } from '../capture/capture-names.ts';
import { EXIT, type Command } from '../command.ts';
import { usage } from '../option-values.ts';
import { readNames } from './plan-names.ts';
import { parsePlanOptions, type PlanOptions } from './plan-options.ts';
import { printPatch, printPlans } from './plan-text.ts';
import { WorkloadPlanning, type Workload, type WorkloadPlan } from './plan-workloads.ts';
import { podSource } from '../trace/trace-pod.ts';
import { problemText } from '../problem-text.ts';

export const plan: Command = {
  name: 'plan',
  async run(words, io) {
    const options = parsePlanOptions(words);
    const seen = await readNames(options.files, io);
    const told = new Set<string>();
    // The manifests are read twice, for pods and for addresses, so each warning would otherwise appear twice.
    const note = (text: string): void => {
      if (!told.has(text)) io.err(`ndots plan: ${text}\n`);
      told.add(text);
    };
    const source =
      options.manifests === null && !options.cluster
        ? null
        : await podSource(options, io, (problem) => note(problemText(problem)));
    if (source === null && seen.listed.size > 0)
      note(
        'the Services are unknown (use --cluster or --manifests), so plan makes no proposals for listed names that may be Services',
      );
    try {
      const owners = await addressOwners(options, io, note);
      const all = await new WorkloadPlanning(options, seen, source, note).all(owners);
      const found = all.filter(({ workload }) => isWanted(workload, options));
      if (found.length === 0 && all.length > 0) throw noWorkload(options.workload ?? '', all);
      if (found.length === 0) {
        if (!seen.explained) note('the input contains no name lookups');
        return EXIT.failed;
      }
      if (options.output === 'json') io.out(`${JSON.stringify(found, null, 2)}\n`);
      else
        io.out(options.output === 'patch' ? printPatch(found, io.program) : printPlans(found, io));
      return found.some(saves) ? EXIT.no : EXIT.ok;
    } finally {
      source?.close();
    }
  },
};

function isWanted(
  { namespace, name }: Workload,
  { workload, namespace: wanted }: PlanOptions,
): boolean {
  return workload === null || (name === workload && (wanted === null || namespace === wanted));
}

function noWorkload(given: string, all: readonly WorkloadPlan[]): Problem {
  const names = all.map(({ workload }) => workload.name).filter((name) => name !== '');
  const some = names.slice(0, 10).join(', ') || 'none is known';
  return usage(
    `the input contains no lookups by ${given}`,
    didYouMean(given, names, `Workloads in it: ${some}`),
  );
}

function saves({ best, plans }: WorkloadPlan): boolean {
  return best !== null || plans.some(({ dotted }) => dotted.length > 0);
}

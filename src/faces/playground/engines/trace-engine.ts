/** The trace engine: plans each client's queries for a name, as `ndots trace` does. */
import { seededRandom } from '../../../server/base/random.ts';
import { emptyScript, type Script } from '../../../tools/resolver/answers-file.ts';
import { findCheaper } from '../../../tools/resolver/cheaper.ts';
import type { AddressFamily } from '../../../tools/resolver/client.ts';
import { bestNdots, planNdots, type ClientPlan } from '../../../tools/resolver/ndots-plan.ts';
import { makeReport, type TraceDocument } from '../../../tools/resolver/trace-document.ts';
import {
  planLookup,
  type LookupPlan,
  type LookupRun,
  type StartServer,
} from '../../../tools/resolver/run-lookup.ts';
import { clientsNamed } from '../../cli/client-choice.ts';
import { imageAddresses, imageSettings } from '../../cli/trace/image-settings.ts';
import { compare, type ClientDifference } from '../../cli/trace/trace-comparison.ts';
import { checkedName } from '../../cli/trace/trace-name.ts';
import { parseScript } from '../../cli/trace/trace-script.ts';
import type { Progress } from './progress.ts';
import { EXAMPLE_CLUSTER } from '../example-cluster.ts';

export interface TraceInput {
  readonly name: string;
  readonly resolvConf: string;
  readonly families: readonly AddressFamily[];
  /** True if the example cluster answers cluster names. */
  readonly cluster: boolean;
  /** The contents of an answers file, or empty if there is none. */
  readonly answers: string;
  readonly clients: readonly string[];
}

export interface TraceResult {
  readonly documents: readonly TraceDocument[];
  readonly differences: readonly ClientDifference[];
  readonly verdict: string;
  /** Savings from lowering `ndots`, for the most common resolver libraries. */
  readonly plans: readonly ClientPlan[];
  /** The `ndots` value that saves the most without breaking anything, or null if none saves any queries. */
  readonly best: number | null;
  /** Notes about the answers and the objects. */
  readonly notes: readonly string[];
}

/** Clients for which `ndots` values are compared. */
const PLANNED = ['glibc', 'musl', 'go', 'c-ares'];

/** Virtual time, milliseconds. */
const LIMIT_MS = 600_000;

/** @throws Problem if the name, answers or objects are invalid */
export async function runTrace(input: TraceInput, progress: Progress): Promise<TraceResult> {
  const name = checkedName(input.name);
  const { families } = input;
  const settings = imageSettings(input.resolvConf);
  const script =
    input.answers.trim() === '' ? emptyScript : await parseScript(input.answers, 'answers');
  const notes: string[] = [];
  const start = input.cluster ? await startCluster(script, notes) : undefined;
  const documents: TraceDocument[] = [];
  const chosen = clientsNamed(input.clients);
  for (const [index, client] of chosen.entries()) {
    progress(`client ${index + 1} of ${chosen.length}: ${client.name}`);
    const plan: LookupPlan = {
      ...{ client, name, families, settings },
      ...{ addrConfig: false, repeat: 1, limitMs: LIMIT_MS },
    };
    const again = (other: LookupPlan): Promise<LookupRun> =>
      planLookup(other, script, seededRandom(1), start);
    const done = await again(plan);
    const cheaper = done.cut ? [] : await findCheaper(done, again);
    documents.push(makeReport(done, cheaper, { startedAt: null, from: null, assumed: null }));
  }
  const plans: ClientPlan[] = [];
  for (const label of PLANNED) {
    const [client] = clientsNamed([label]);
    progress(`ndots for ${label}`);
    const asked = { name, lookups: 1, families, script, assumed: false };
    plans.push(await planNdots(client!, settings, [asked], start));
  }
  return { documents, ...compare(documents), plans, best: bestNdots(plans), notes };
}

/** Starts a server for the example cluster using kubeadm's Corefile. The script provides upstream replies. */
async function startCluster(script: Script, notes: string[]): Promise<StartServer> {
  const { corefileFor, traceServer } = await import('../../cli/trace/trace-server.ts');
  return traceServer({
    corefile: corefileFor(EXAMPLE_CLUSTER, 'cluster.local'),
    script,
    client: imageAddresses[0]!,
    env: {},
    tell: (text) => notes.push(text),
  });
}

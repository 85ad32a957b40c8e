/**
 * Finds changes that make a lookup cheaper, by planning the same lookup again with one change at a time and comparing
 * the costs.
 */
import { countDots } from './client.ts';
import { totalsOf, type CheaperDocument } from './trace-document.ts';
import { withNdots } from './resolv-conf.ts';
import type { LookupPlan, LookupRun } from './run-lookup.ts';

/** Returns the changes that need fewer queries to find the same addresses, best first. */
export async function findCheaper(
  run: LookupRun,
  again: (plan: LookupPlan) => Promise<LookupRun>,
): Promise<CheaperDocument[]> {
  const { plan } = run;
  const before = totalsOf(run);
  const first = run.results[0]?.found;
  if (first === undefined || first.failure !== null || before.names < 2) return [];
  const documents: CheaperDocument[] = [];
  const wanted = [...first.addresses].sort().join(' ');
  const add = async (change: string, plans: LookupPlan, caution: string): Promise<void> => {
    const other = await again(plans);
    const result = other.results[0]?.found;
    const totals = totalsOf(other);
    documents.push({
      change,
      name: plans.name,
      queries: totals.queries,
      elapsedMs: totals.elapsedMs,
      ok: result?.failure === null,
      same: [...(result?.addresses ?? [])].sort().join(' ') === wanted,
      caution,
    });
  };
  const single = { ...plan, repeat: 1 };
  const full = foundName(run);
  if (full !== null && `${plan.name}.` !== full && plan.name !== full) {
    await add(
      'write the full name with a final dot',
      { ...single, name: full },
      'The name is then tied to this namespace and cluster.',
    );
  } else if (!plan.name.endsWith('.')) {
    await add(
      'write a final dot',
      { ...single, name: `${plan.name}.` },
      'Some programs do not accept a final dot in a host name (TLS, HTTP virtual hosts).',
    );
  }
  const conf = plan.client.conf(plan.settings);
  const dots = countDots(plan.name);
  if (dots > 0 && dots < conf.ndots) {
    const caution =
      plan.client.name === 'musl'
        ? `musl then never searches names with ${dots} or more dots: ${dots === 1 ? 'service.namespace' : 'service.namespace.svc'} stops working.`
        : 'Names with more dots that exist only below a search domain cost one more pair of queries.';
    await add(
      `ndots:${dots} in the pod's dnsConfig`,
      {
        ...single,
        settings: { ...plan.settings, resolvConf: withNdots(plan.settings.resolvConf, dots) },
      },
      caution,
    );
  }
  const auto = autopath(run);
  if (auto !== null) documents.push(auto);
  return documents
    .filter((one) => one.queries < before.queries)
    .sort((one, other) => Number(other.same) - Number(one.same) || one.queries - other.queries);
}

function foundName(run: LookupRun): string | null {
  const hit = run.trace.exchanges.find(
    (exchange) => exchange.reply?.answer.some((record) => record.type === exchange.type) === true,
  );
  return hit?.name ?? null;
}

/** With autopath, a server answers the first search name with the result of the whole search. */
function autopath(run: LookupRun): CheaperDocument | null {
  const [first] = run.trace.exchanges;
  if (first === undefined || run.plan.name.endsWith('.')) return null;
  const asked = `${run.plan.name}.`.toLowerCase();
  // The server only applies the search path to names like `….NAMESPACE.svc.ZONE`.
  const isSearched = first.name.toLowerCase().startsWith(asked);
  if (!isSearched || !/^[^.]+\.svc\./.test(first.name.toLowerCase().slice(asked.length)))
    return null;
  const sent = (name: string): typeof run.trace.exchanges =>
    run.trace.exchanges.filter((exchange) => exchange.name.toLowerCase() === name.toLowerCase());
  const group = sent(first.name);
  const slowest = (name: string): number =>
    Math.max(0, ...sent(name).map((exchange) => (exchange.answeredAtMs ?? 0) - exchange.atMs));
  // The first step is the server's own lookup, and the second is its upstream query.
  const last = run.trace.exchanges.at(-1)!.name;
  const elapsedMs = slowest(first.name) + (last === first.name ? 0 : slowest(last));
  return {
    change: 'autopath in the Corefile: the server walks the search list',
    name: run.plan.name,
    queries: group.length,
    elapsedMs: Math.round(elapsedMs * 10) / 10,
    ok: true,
    same: true,
    caution: 'The server tries the other names itself; pods do not change.',
  };
}

/**
 * Queries a cluster’s DNS from this machine: each replica at its own address, and the Service in
 * front of them.
 */
import {
  askOne,
  dataOfAnswer,
  outcome,
  question,
  serverText,
  uniqueServers,
} from '../../probe/probe-queries.ts';
import { planChecks } from '../../probe/check-file.ts';
import type { ProbeContext } from '../../probe/check.ts';
import { askBelow, type SuffixReplies } from '../../probe/checks/suffix-hazards.ts';
import type { ProbeResult, ProbeServer } from '../../probe/network.ts';
import { runCheck, type CheckResult } from '../../probe/round.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import type { KnownName } from './service.ts';

/** The plan of the queries. */
export interface AskPlan {
  /** Without a final dot. */
  readonly domain: string;
  readonly known: readonly KnownName[];
  /** Absolute names outside the cluster. */
  readonly external: readonly string[];
  /** Absolute; null if no name with a large answer is known. */
  readonly large: string | null;
  /** Suffixes in the pods’ search paths other than the cluster’s. Absolute. */
  readonly suffixes: readonly string[];
}

/** One server's reply to one question. */
export interface ServerReply {
  /** `IP:port`. */
  readonly server: string;
  readonly host: string;
  readonly name: string;
  readonly asked: ProbeResult;
  /** `NOERROR`, `NODATA`, `NXDOMAIN`, … or the reason that there is no reply. */
  readonly outcome: string;
  readonly data: readonly string[];
}

/** A and AAAA of a name at a server. */
export interface FamilyReplies {
  readonly a: ServerReply;
  readonly aaaa: ServerReply;
}

/** All queries and their results. */
export interface Answers {
  readonly plan: AskPlan;
  /** The first query to each replica and to each of the Service’s addresses. */
  readonly replicas: readonly ServerReply[];
  readonly vips: readonly ServerReply[];
  /** Service names as each answering replica returns them, compared with the API server. */
  readonly known: readonly (ServerReply & { readonly expected: readonly string[] })[];
  readonly external: readonly ServerReply[];
  readonly families: readonly FamilyReplies[];
  readonly suffixes: ReadonlyMap<string, SuffixReplies>;
  /**
   * By name: `tcp`, `edns-512`, `edns-1232`, `edns-4096`, `truncation`, `pairs`, `fresh`,
   * `missing`, `walk`.
   */
  readonly checks: ReadonlyMap<string, CheckResult>;
}

/** The first step, which shows whether any server answers from here. */
export interface Greeting {
  /** The query’s type; AAAA if the name has only IPv6 addresses. */
  readonly type: number;
  readonly replicas: readonly ServerReply[];
  readonly vips: readonly ServerReply[];
}

/** Queries each replica and the Service for the name that exists in every cluster. */
export async function greet(context: ProbeContext): Promise<Greeting> {
  const name = `kubernetes.default.svc.${context.clusterDomain}.`;
  const ask = async (type: number): Promise<Greeting> => {
    const of = (servers: readonly ProbeServer[]): Promise<readonly ServerReply[]> =>
      Promise.all(servers.map((server) => reply(context, server, name, type)));
    const [replicas, vips] = await Promise.all([of(context.replicas), of(context.vip)]);
    return { type, replicas, vips };
  };
  const first = await ask(TYPE.A);
  const outcomes = [...first.replicas, ...first.vips].map((each) => each.outcome);
  const isOther = outcomes.includes('NODATA') && !outcomes.includes('NOERROR');
  return isOther ? ask(TYPE.AAAA) : first;
}

/** Sends all other queries to the servers that answered. Ends early when aborted. */
export async function askCluster(
  given: ProbeContext,
  plan: AskPlan,
  greeting: Greeting,
  signal: AbortSignal,
): Promise<Answers> {
  // A server that did not answer the first query is already a finding, and more queries would only
  // wait for it.
  const isAlive = (replies: readonly ServerReply[]) => (server: ProbeServer) =>
    replies.some((each) => each.server === serverText(server) && each.asked.reply !== null);
  const context: ProbeContext = {
    ...given,
    replicas: given.replicas.filter(isAlive(greeting.replicas)),
    vip: given.vip.filter(isAlive(greeting.vips)),
  };
  const servers = uniqueServers([...context.replicas, ...context.vip]);
  const each = async <T, R>(
    list: readonly T[],
    ask: (of: T) => Promise<R>,
  ): Promise<readonly R[]> => (signal.aborted ? [] : Promise.all(list.map(ask)));
  const pairs = (names: readonly string[]) =>
    context.replicas.flatMap((server) => names.map((name) => ({ server, name })));
  const known = await each(
    context.replicas.flatMap((server) => plan.known.map((of) => ({ server, of }))),
    async ({ server, of }) => ({
      ...(await reply(context, server, of.name, TYPE.A)),
      expected: of.addresses.filter((address) => !address.includes(':')),
    }),
  );
  const external = await each(pairs(plan.external), ({ server, name }) =>
    reply(context, server, name, TYPE.A),
  );
  const both = [`kubernetes.default.svc.${plan.domain}.`, ...plan.external.slice(0, 1)];
  const families = await each(
    servers.flatMap((server) => both.map((name) => ({ server, name }))),
    async ({ server, name }) => ({
      a: await reply(context, server, name, TYPE.A),
      aaaa: await reply(context, server, name, TYPE.AAAA),
    }),
  );
  const [first] = context.vip.length > 0 ? context.vip : context.replicas;
  const suffixes = new Map(
    first === undefined
      ? []
      : await each(plan.suffixes, async (suffix) => {
          return [suffix, await askBelow(context, first, suffix, 'www.example.com.')] as const;
        }),
  );
  const quiet = families.some(({ aaaa }) => aaaa.asked.reply === null);
  const checks = new Map<string, CheckResult>();
  for (const [name, check] of planned(plan, greeting.type, quiet)) {
    if (signal.aborted || servers.length === 0) break;
    checks.set(name, await runCheck(check, context, context.clock));
  }
  const { replicas, vips } = greeting;
  return { plan, replicas, vips, known, external, families, suffixes, checks };
}

type Planned = ReturnType<typeof planChecks>['checks'][number];

/**
 * @param type the query type for the cluster's own name
 * @param quiet true if some queries are not answered at all, so that a full search would wait too long
 */
function planned(
  plan: AskPlan,
  type: number,
  quiet: boolean,
): readonly (readonly [string, Planned])[] {
  const asked = { type };
  const rows: (readonly [string, string, Readonly<Record<string, unknown>>])[] = [
    ['fresh', 'vip-fresh-port', { ...asked, queries: 5 }],
    ['pairs', 'pair-same-socket', {}],
    ['tcp', 'tcp', asked],
    ...[512, 1232, 4096].map((size) => [`edns-${size}`, 'edns-1232', { ...asked, size }] as const),
    ['missing', 'negative', {}],
  ];
  if (plan.large !== null) rows.push(['truncation', 'truncation-roundtrip', { name: plan.large }]);
  if (!quiet) rows.push(['walk', 'search-walk', { name: 'kubernetes.default' }]);
  const { checks } = planChecks(
    { clusterDomain: `${plan.domain}.` },
    rows.map(([, kind, values]) => ({ kind, values })),
  );
  return checks.map((check, nth) => [rows[nth]![0], check]);
}

async function reply(
  context: ProbeContext,
  server: ProbeServer,
  name: string,
  type: number,
): Promise<ServerReply> {
  // Without EDNS, as most resolvers in pods query. Separate queries show the effect of EDNS.
  const asked = await askOne(context, server, question(name, type));
  return {
    server: serverText(server),
    host: server.host,
    name,
    asked,
    outcome: outcome(asked, type),
    data: dataOfAnswer(asked, type),
  };
}

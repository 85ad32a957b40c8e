/** The verbs of ndots. What a verb takes is loaded apart from what it does: help and completion need only the former. */
import type { Command } from './command.ts';
import type { Usage } from './option.ts';

interface Verb {
  /** One line, here so that the list of verbs loads none of them. */
  readonly summary: string;
  usage(): Promise<Usage>;
  command(): Promise<Command>;
}

const verbs: Readonly<Record<string, Verb>> = {
  serve: {
    summary: 'cluster DNS server; reads a Corefile, takes the flags of coredns',
    usage: async () => (await import('./serve-options.ts')).serveUsage,
    command: async () => (await import('./serve.ts')).serve,
  },
  'node-cache': {
    summary: 'DNS cache of a node; takes the flags of NodeLocal DNSCache',
    usage: async () => (await import('./node-cache-options.ts')).nodeCacheUsage,
    command: async () => (await import('./node-cache.ts')).nodeCache,
  },
  trace: {
    summary: 'every query a given client would send for a name, and why',
    usage: async () => (await import('./trace-options.ts')).traceUsage,
    command: async () => (await import('./trace.ts')).trace,
  },
  query: {
    summary: 'one plain DNS query, in dig’s or doggo’s spelling',
    usage: async () => (await import('./query-options.ts')).queryUsage,
    command: async () => (await import('./query.ts')).query,
  },
  lint: {
    summary: 'what is wrong with a Corefile, and with what runs it',
    usage: async () => (await import('./lint-options.ts')).lintUsage,
    command: async () => (await import('./lint.ts')).lint,
  },
  capture: {
    summary: 'queries and replies as they pass: live, from captures, dnstap, logs',
    usage: async () => (await import('./capture-options.ts')).captureUsage,
    command: async () => (await import('./capture.ts')).capture,
  },
  diff: {
    summary: 'which answers a change of the Corefile changes',
    usage: async () => (await import('./diff-options.ts')).diffUsage,
    command: async () => (await import('./diff.ts')).diff,
  },
  doctor: {
    summary: 'what is wrong with DNS: from captures, logs and counters to causes',
    usage: async () => (await import('./doctor-options.ts')).doctorUsage,
    command: async () => (await import('./doctor.ts')).doctor,
  },
  cache: {
    summary: 'what servers keep under a name, and that they forget it',
    usage: async () => (await import('./cache-options.ts')).cacheUsage,
    command: async () => (await import('./cache.ts')).cache,
  },
  etcd: {
    summary: 'records of services in etcd (SkyDNS): put, get, list, rm',
    usage: async () => (await import('./etcd-options.ts')).etcdUsage,
    command: async () => (await import('./etcd.ts')).etcd,
  },
  lab: {
    summary: 'failures of DNS played in network namespaces; kube-proxy’s rules',
    usage: async () => (await import('./lab-options.ts')).labUsage,
    command: async () => (await import('./lab.ts')).lab,
  },
  rollout: {
    summary: 'what a rollout of the DNS pods loses: predicted, and played',
    usage: async () => (await import('./rollout-options.ts')).rolloutUsage,
    command: async () => (await import('./rollout.ts')).rollout,
  },
  check: {
    summary: 'whether DNS does what clients need: every replica, TCP, pairs …',
    usage: async () => (await import('./check-options.ts')).checkUsage,
    command: async () => (await import('./check.ts')).check,
  },
  size: {
    summary: 'how many replicas, by the cluster or by what is measured',
    usage: async () => (await import('./size-options.ts')).sizeUsage,
    command: async () => (await import('./size.ts')).size,
  },
  webhook: {
    summary: 'dnsConfig of pods by annotation: admission webhook or policy',
    usage: async () => (await import('./webhook-options.ts')).webhookUsage,
    command: async () => (await import('./webhook.ts')).webhook,
  },
  exec: {
    summary: 'a verb in the network of a pod, in an ephemeral container',
    usage: async () => (await import('./exec-options.ts')).execUsage,
    command: async () => (await import('./exec.ts')).exec,
  },
  bench: {
    summary: 'a load as clients make it, against one server or two',
    usage: async () => (await import('./bench-options.ts')).benchUsage,
    command: async () => (await import('./bench.ts')).bench,
  },
  completion: {
    summary: 'completion script for bash, zsh, fish or kubectl',
    usage: async () => (await import('./completion.ts')).completionUsage,
    command: async () => (await import('./completion.ts')).completion,
  },
  version: {
    summary: 'version, runtime, and which transports this machine gives',
    usage: async () => (await import('./version.ts')).versionUsage,
    command: async () => (await import('./version.ts')).version,
  },
};

/** The verbs in the order in which help lists them. */
export const verbNames: readonly string[] = Object.keys(verbs);

/** Verb → what it is for, in one line. */
export const verbSummaries: ReadonlyMap<string, string> = new Map(
  Object.entries(verbs).map(([name, { summary }]) => [name, summary]),
);

/** Whether there is a verb of this name. */
export function isVerb(name: string): boolean {
  return Object.hasOwn(verbs, name);
}

/** @param name one of `verbNames` */
export function loadVerb(name: string): Promise<Command> {
  return verbs[name]!.command();
}

/** @param name one of `verbNames` */
export function loadUsage(name: string): Promise<Usage> {
  return verbs[name]!.usage();
}

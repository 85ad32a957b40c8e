import type { Command } from './command.ts';

/** Verbs by name; each is loaded only when it is used. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  trace: async () => (await import('./trace.ts')).trace,
  query: async () => (await import('./query.ts')).query,
  completion: async () => (await import('./completion.ts')).completion,
  version: async () => (await import('./version.ts')).version,
};

/** One line each, here so that the list of verbs loads none of them. */
export const verbSummaries: ReadonlyMap<string, string> = new Map([
  ['serve', 'cluster DNS server; reads a Corefile, takes the flags of coredns'],
  ['trace', 'every query a given client would send for a name, and why'],
  ['query', 'one plain DNS query, in dig’s or doggo’s spelling'],
  ['completion', 'completion script for bash, zsh or fish'],
  ['version', 'version, runtime, and which transports this machine gives'],
]);

export const verbNames: readonly string[] = Object.keys(loaders);

export function isVerb(name: string): boolean {
  return Object.hasOwn(loaders, name);
}

/** @param name one of `verbNames` */
export function loadVerb(name: string): Promise<Command> {
  return loaders[name]!();
}

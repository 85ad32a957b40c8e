/** Loads commands. Usage and implementation are separate, because help and completion only need the usage. */
import type { Command, Verb } from './command.ts';
import type { Usage } from './option.ts';
import { toolVerbs } from './tool-verbs.ts';
import type { VerbName } from './verb-names.ts';

const verbs: Readonly<Partial<Record<VerbName, Verb>>> = {
  serve: {
    usage: async () => (await import('./serve/serve-options.ts')).serveUsage,
    command: async () => (await import('./serve/serve.ts')).serve,
  },
  'node-cache': {
    usage: async () => (await import('./node-cache/node-cache-options.ts')).nodeCacheUsage,
    command: async () => (await import('./node-cache/node-cache.ts')).nodeCache,
  },
  version: {
    usage: async () => (await import('./version/version.ts')).versionUsage,
    command: async () => (await import('./version/version.ts')).version,
  },
  ...toolVerbs,
};

/** True if this build includes the command. The server image leaves most of them out. */
export function isBuiltIn(name: VerbName): boolean {
  return verbs[name] !== undefined;
}

export function loadVerb(name: VerbName): Promise<Command> {
  return verbs[name]!.command();
}

export function loadUsage(name: VerbName): Promise<Usage> {
  return verbs[name]!.usage();
}

/** Tunes those of a node cache's server blocks that forward to the cluster's DNS. */
import type {
  Corefile,
  Directive,
  Property,
  ServerBlock,
  Token,
} from '../corefile/corefile-tree.ts';

export interface ClusterDns {
  /** The address represented by the template's variable. */
  readonly address: string;
  /** A file with its endpoints, which replaces the address, or null if there is none. */
  readonly file: string | null;
}

/**
 * Changes blocks that forward to the cluster's DNS. Their denials follow the zones' serial, so that a new name is not
 * hidden. Their queries go directly to the endpoints.
 */
export function tuneClusterBlocks(corefile: Corefile, dns: ClusterDns): Corefile {
  return { ...corefile, blocks: corefile.blocks.map((block) => tuned(block, dns)) };
}

/** The first zone whose queries go to the cluster's DNS, or null if there is none. */
export function clusterZone({ blocks }: Corefile, { address }: ClusterDns): string | null {
  const block = blocks.find(({ directives }) => directives.some((each) => asks(each, address)));
  return block?.keys[0]?.zone ?? null;
}

function asks({ name, args }: Directive, address: string): boolean {
  return name === 'forward' && args.slice(1).some(({ text }) => text === address);
}

function tuned(block: ServerBlock, { address, file }: ClusterDns): ServerBlock {
  if (!block.directives.some((directive) => asks(directive, address))) return block;
  return {
    ...block,
    directives: block.directives.map((directive) => {
      if (directive.name === 'cache') return following(directive);
      if (file === null || !asks(directive, address)) return directive;
      const args = directive.args.map((word, at) =>
        at > 0 && word.text === address ? { ...word, text: file } : word,
      );
      return { ...directive, args };
    }),
  };
}

function following(cache: Directive): Directive {
  const lines = cache.block ?? [];
  if (lines.some(({ name }) => name.text === 'follow_serial')) return cache;
  const name: Token = { ...cache.at, text: 'follow_serial', quoted: false };
  const line: Property = { name, args: [], block: null };
  return { ...cache, block: [...lines, line] };
}

/**
 * Prepares a Corefile for comparison by simulating anything outside the process. Each upstream gets a different
 * address, which shows which one was queried. Both sides read Kubernetes objects from the same directory.
 */
import { isIP, parseAddress } from '../../server/base/ip.ts';
import type {
  Corefile,
  Directive,
  Property,
  ServerBlock,
  Token,
} from '../../server/corefile/corefile-tree.ts';
import { splitScheme } from '../../server/corefile/zones.ts';
import { hashBytes } from './name-hash.ts';

/** A Corefile that can be served inside this process. */
export interface PreparedCorefile {
  readonly corefile: Corefile;
  /** The upstreams for each address, as spelled in the Corefile's forward lines. */
  readonly upstreams: ReadonlyMap<string, readonly string[]>;
  /** Parts that are not compared, and why. */
  readonly left: readonly string[];
}

/** Directives that need other systems, by the reason for leaving them out. */
const beyond: Readonly<Record<string, string>> = {
  etcd: 'its records are in etcd',
  secondary: 'its zones are on other servers',
  dnstap: '',
  on: '',
  tls: '',
  geoip: 'its database is not read',
  quic: '',
  https3: '',
  route53: 'its records are in a cloud',
  azure: 'its records are in a cloud',
  clouddns: 'its records are in a cloud',
  nomad: 'its records are in Nomad',
};

/** Properties that configure how to reach something. */
const reaching: Readonly<Record<string, readonly string[]>> = {
  kubernetes: ['endpoint', 'tls', 'kubeconfig', 'snapshot', 'manifests', 'startup_timeout'],
  forward: ['tls', 'resolver', 'source_address', 'tls_servername'],
};

/** @param manifests the directory that contains the objects for both sides */
export function prepare(corefile: Corefile, manifests: string): PreparedCorefile {
  const upstreams = new Map<string, readonly string[]>();
  const left = new Set<string>();
  const blocks = corefile.blocks.map((block): ServerBlock => ({
    ...block,
    // Answers do not depend on the transport.
    keys: block.keys.map((key) => ({ ...key, scheme: 'dns' })),
    directives: block.directives.flatMap((directive) => {
      const why = Object.hasOwn(beyond, directive.name) ? beyond[directive.name]! : null;
      if (why !== null) {
        if (why !== '') left.add(`${directive.name}: ${why}`);
        return [];
      }
      return [rewritten(directive, manifests, upstreams)];
    }),
  }));
  return { corefile: { ...corefile, blocks }, upstreams, left: [...left] };
}

function rewritten(
  directive: Directive,
  manifests: string,
  upstreams: Map<string, readonly string[]>,
): Directive {
  const { name, at, args } = directive;
  const block = withoutReaching(directive);
  const word = wordAt(at);
  switch (name) {
    case 'kubernetes':
      return withObjects(directive, manifests);
    case 'forward':
    case 'proxy': {
      const [from, ...to] = args;
      const spelled = to.map(({ text }) => text);
      const addresses = to.map(({ text }) => upstreamAddress(text));
      for (const address of addresses) {
        const known = upstreams.get(address) ?? [];
        upstreams.set(address, [...new Set([...known, ...spelled])].toSorted());
      }
      const words = [...new Set(addresses)].map(word);
      return { ...directive, block, args: from === undefined ? words : [from, ...words] };
    }
    case 'bind':
      return {
        ...directive,
        args: args.map((token) => ({ ...token, text: bindAddress(token.text) })),
      };
    default:
      return { ...directive, block };
  }
}

/** Returns a `kubernetes` directive that reads objects from these manifests. */
export function withObjects(directive: Directive, manifests: string): Directive {
  const word = wordAt(directive.at);
  const line: Property = { name: word('manifests'), args: [word(manifests)], block: null };
  return { ...directive, block: [line, ...(withoutReaching(directive) ?? [])] };
}

function withoutReaching({ name, block }: Directive): Directive['block'] {
  const away = reaching[name];
  return block?.filter((line) => away?.includes(line.name.text) !== true) ?? null;
}

function wordAt({ place }: Token): (text: string) => Token {
  return (text) => ({ text, place, quoted: false });
}

/**
 * Returns the address that represents an upstream. It is derived from the spelling if necessary, because another port
 * is another server.
 */
function upstreamAddress(text: string): string {
  const { scheme, rest } = splitScheme(text);
  const [bare = ''] = rest.split('%');
  const whole = parseAddress(bare) === null ? (/^\[?([^\]]*)\]?:53$/.exec(bare)?.[1] ?? '') : bare;
  if (scheme === 'dns' && parseAddress(whole) !== null) return whole;
  const [a, b] = hashBytes(text);
  return `198.51.${a === 100 ? 101 : a}.${b}`;
}

/** This machine may not have the interface, so an address derived from its name represents it. */
function bindAddress(text: string): string {
  if (isIP(text.split('%')[0]!) !== 0) return text;
  const [a, b] = hashBytes(text);
  return `203.0.${a}.${b}`;
}

/** Plans which addresses a configuration listens on. */
import { printHostPort } from '../../base/ip.ts';
import { resolve } from 'node:path';
import { Problem, type Place } from '../../base/problem.ts';
import { overlapProblems } from '../../corefile/overlap.ts';
import type { Key, ServerBlock } from '../../corefile/corefile-tree.ts';
import { usualLimits, type ListenerLimits } from '../../transport/limits/limits.ts';
import type { ProxyPlan } from '../../transport/proxy/proxy-policy.ts';
import { served, servedSchemes } from '../../transport/transports.ts';
import { transports, type Scheme } from '../../wire/transports.ts';
import { bindAddresses } from './bind-addresses.ts';
import type { BoundBlock } from './configuration.ts';
import type { PlannedLimits, TlsPlan } from './block-plan.ts';

/** A listen address and its settings. This is plain data, and the same for all workers. */
export interface EndpointPlan {
  /**
   * Listen address with scheme, e.g. `dns://:53` or `dns://127.0.0.1:53`. It serves as the identity, and as the
   * `server` label in metrics.
   */
  readonly server: string;
  readonly scheme: Scheme;
  /**
   * An IP address as given to `bind`, or empty if there is no `bind`. Empty, `0.0.0.0` and `::` all mean all addresses
   * of both families.
   */
  readonly address: string;
  readonly port: number;
  readonly limits: ListenerLimits;
  readonly tls: TlsPlan | null;
  readonly proxy: ProxyPlan | null;
  readonly zones: readonly { readonly block: number; readonly zone: string }[];
}

export interface ListenerShares {
  /** Maximum number of waiting queries. */
  readonly waiting: number;
  /** Maximum bytes held for all of its clients. */
  readonly heldBytes: number;
  /** The proportion of connections that stay open when memory is short, greater than 0. */
  readonly spared: number;
}

const AMPLE: ListenerShares = {
  waiting: usualLimits.waiting,
  heldBytes: usualLimits.heldBytes,
  spared: 1,
};

/**
 * Returns all listen addresses in a configuration, or the problems that prevent listening.
 * @param directory base directory for relative file paths
 * @param shares a listener's default limits
 */
export function planEndpoints(
  blocks: readonly BoundBlock[],
  directory: string,
  shares: ListenerShares = AMPLE,
): {
  readonly endpoints: readonly EndpointPlan[];
  readonly problems: readonly Problem[];
} {
  const problems: Problem[] = [];
  // By block, or null if the block's addresses could not be determined.
  const binds = blocks.map(({ plan, block }) => {
    try {
      return bindAddresses(plan.binds, plan.bindExcept);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      problems.push(error.with({ place: placeOf(error, block) }));
      return null;
    }
  });
  // A block with an error is skipped, because its addresses are uncertain.
  const claims = blocks.flatMap(({ block, view, sound }, index) => {
    const addresses = binds[index]!;
    if (!sound || addresses === null) return [];
    return [{ keys: block.keys, binds: addresses, hasView: view !== '' }];
  });
  for (const problem of overlapProblems(claims)) problems.push(problem);
  const endpoints = new Map<string, GrowingPlan>();
  blocks.forEach(({ block, plan, sound }, index) => {
    for (const key of block.keys) {
      const wrong = keyProblem(key, plan.tls !== null);
      if (wrong !== null) {
        // If a block has an error, the directive that seems to be missing may be the invalid one.
        if (sound || wrong.code !== 'tls-missing') problems.push(wrong);
        continue;
      }
      const addresses = binds[index] ?? [];
      for (const address of addresses.length === 0 ? [''] : addresses) {
        const server = `${key.scheme}://${printHostPort(address, key.port)}`;
        const known = endpoints.get(server);
        const zone = { block: index, zone: key.zone };
        if (known !== undefined) {
          known.zones.push(zone);
          // If several blocks share the address, the first with a proxy policy decides.
          known.proxy ??= plan.proxy;
        } else {
          const tls = plan.tls === null ? null : absolute(plan.tls, directory);
          const limits = limitsOf(plan.limits, key.scheme, shares);
          const where = { server, scheme: key.scheme, address, port: key.port };
          endpoints.set(server, { ...where, limits, tls, proxy: plan.proxy, zones: [zone] });
        }
      }
    }
  });
  return { endpoints: [...endpoints.values()], problems };
}

/**
 * Returns the reason why nothing can listen on a server block's address, or null.
 * @param hasTls true if the block has `tls`
 */
export function keyProblem(key: Key, hasTls: boolean): Problem | null {
  if (!servedSchemes.includes(key.scheme)) return notServed(key);
  return transports[key.scheme].tls === 'always' && !hasTls ? certificateMissing(key) : null;
}

/** Returns the position of the word that the problem quotes, or the block's position if it is not found. */
function placeOf(error: Problem, { directives, place }: ServerBlock): Place {
  const word = /'([^']*)'/.exec(error.message)?.[1];
  const tokens = directives.flatMap(({ args, block }) => [
    ...args,
    ...(block ?? []).flatMap((property) => property.args),
  ]);
  return tokens.find(({ text }) => text === word)?.place ?? place;
}

interface GrowingPlan extends EndpointPlan {
  proxy: ProxyPlan | null;
  zones: { block: number; zone: string }[];
}

/** Returns a transport's limits: those set by the block, with defaults for the rest. */
function limitsOf(
  { of, ...given }: PlannedLimits,
  scheme: Scheme,
  { waiting, heldBytes, spared }: ListenerShares,
): ListenerLimits {
  const connections = served(scheme).connections.default;
  const stay = Math.max(usualLimits.spared, Math.floor(connections * spared));
  return { ...usualLimits, waiting, heldBytes, connections, spared: stay, ...given, ...of[scheme] };
}

/** Returns the `tls` files, with paths relative to the Corefile's directory made absolute. */
function absolute(tls: TlsPlan, directory: string): TlsPlan {
  const path = (file: string): string => (file === '' ? '' : resolve(directory, file));
  return {
    ...tls,
    certificate: path(tls.certificate),
    key: path(tls.key),
    authority: path(tls.authority),
    keyLog: path(tls.keyLog),
  };
}

function certificateMissing({ scheme, text, place }: Key): Problem {
  return new Problem({
    code: 'tls-missing',
    text: `${text} needs a certificate: this server block has no 'tls'`,
    place,
    hint: `${scheme}:// clients could not connect.`,
    remedy: 'Add "tls CERT KEY" to the server block.',
  });
}

/** Transports over QUIC. */
const noQuic: ReadonlySet<string> = new Set(['quic', 'https3']);

function notServed({ scheme, text, place }: Key): Problem {
  return new Problem({
    code: 'scheme-not-served',
    text: `cannot serve ${text}: the transport '${scheme}' is not available`,
    place,
    hint: `${noQuic.has(scheme) ? 'The runtime has no QUIC. ' : ''}Supported schemes: ${servedSchemes.join(', ')}.`,
    remedy: 'Remove the address, or use one of these schemes.',
  });
}

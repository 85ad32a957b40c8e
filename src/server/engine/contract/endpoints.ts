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

/** A listen address and its settings; plain data, the same for all workers. */
export interface EndpointPlan {
  /**
   * Listen address with scheme, e.g. `dns://:53` or `dns://127.0.0.1:53`: its identity, and the
   * `server` label of metrics.
   */
  readonly server: string;
  readonly scheme: Scheme;
  /**
   * An IP address as `bind` names it; empty: there is no `bind`. Empty, `0.0.0.0` and `::` all mean
   * all addresses of both families.
   */
  readonly address: string;
  readonly port: number;
  readonly limits: ListenerLimits;
  readonly tls: TlsPlan | null;
  readonly proxy: ProxyPlan | null;
  readonly zones: readonly { readonly block: number; readonly zone: string }[];
}

/** The default limits of each listener. */
export interface ListenerShares {
  /** Queries that may wait. */
  readonly waiting: number;
  /** Bytes for all of its clients. */
  readonly heldBytes: number;
  /** The part of the connections that stay where memory is short, above 0. */
  readonly spared: number;
}

const AMPLE: ListenerShares = {
  waiting: usualLimits.waiting,
  heldBytes: usualLimits.heldBytes,
  spared: 1,
};

/**
 * All listen addresses of a configuration, or the problems that prevent listening.
 * @param directory base of relative file paths
 * @param shares the default limits of a listener
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
  // By block; null: its addresses could not be determined.
  const binds = blocks.map(({ plan, block }) => {
    try {
      return bindAddresses(plan.binds, plan.bindExcept);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      problems.push(error.with({ place: placeOf(error, block) }));
      return null;
    }
  });
  // A block with a mistake is skipped, because its addresses are uncertain.
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
        // In a block with a mistake the missing directive may be the mistaken one.
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
          // If several blocks share the address, the first one with a proxy policy decides.
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
 * Why nothing can listen at an address of a server block; null: something can.
 * @param hasTls whether the block has `tls`
 */
export function keyProblem(key: Key, hasTls: boolean): Problem | null {
  if (!servedSchemes.includes(key.scheme)) return notServed(key);
  return transports[key.scheme].tls === 'always' && !hasTls ? certificateMissing(key) : null;
}

/** The place of the word that the problem quotes; the block's place if it is not found. */
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

/** The limits of a transport: those of the block, and defaults for the rest. */
function limitsOf(
  { of, ...given }: PlannedLimits,
  scheme: Scheme,
  { waiting, heldBytes, spared }: ListenerShares,
): ListenerLimits {
  const connections = served(scheme).connections.default;
  const stay = Math.max(usualLimits.spared, Math.floor(connections * spared));
  return { ...usualLimits, waiting, heldBytes, connections, spared: stay, ...given, ...of[scheme] };
}

/** The files of `tls` with paths relative to the Corefile's directory made absolute. */
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
    hint: `Clients of ${scheme}:// could not connect.`,
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
    hint: `${noQuic.has(scheme) ? 'The runtime has no QUIC. ' : ''}Served are ${servedSchemes.join(', ')}.`,
    remedy: 'Remove the address, or use one of these schemes.',
  });
}

/** The clients of a finding, by workload, with their resolvers. */
import type { AddressOwners } from '../../pods/address-owners.ts';
import type { Observations } from '../observe/observations.ts';
import type { Finding } from '../findings/finding.ts';
import { isServer } from '../observe/roles.ts';

/** Some clients that belong together. */
export interface NamedClients {
  /** `shop/deploy/cart`, a pod, or an address. */
  readonly name: string;
  readonly clients: number;
  /** Of all exchanges of the finding, 0 to 1. */
  readonly share: number;
}

/** Clients and resolvers of a finding. */
export interface Who {
  readonly clients: number;
  readonly nodes: number;
  /** The largest first. */
  readonly groups: readonly NamedClients[];
  /**
   * The recognised resolvers, the most frequent first; `glibc or c-ares`: the capture does not
   * distinguish them.
   */
  readonly resolvers: readonly (readonly [string, number])[];
}

/** Clients of a finding. */
export function whoOf(
  { exchanges, counted }: Finding,
  observed: Observations,
  owners: AddressOwners,
): Who {
  const counts = new Map(counted);
  // A forwarding server's queries are seen beside its clients': the clients are affected.
  const programs = exchanges.filter(({ client }) => !isServer(observed, client.address));
  const hit = programs.length > 0 ? programs : exchanges;
  for (const { client } of hit) counts.set(client.address, (counts.get(client.address) ?? 0) + 1);
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const groups = new Map<string, { clients: number; count: number }>();
  const nodes = new Set<string>();
  const resolvers = new Map<string, number>();
  for (const [address, count] of counts) {
    const owner = owners.get(address);
    const name =
      owner === undefined
        ? address
        : `${owner.namespace === '' ? '' : `${owner.namespace}/`}${owner.workload || owner.name}`;
    if (owner !== undefined && owner.node !== '') nodes.add(owner.node);
    const group = groups.get(name) ?? { clients: 0, count: 0 };
    groups.set(name, { clients: group.clients + 1, count: group.count + count });
    const kinds = observed.clients.get(address)?.recognition.best?.among ?? [];
    const resolver = isServer(observed, address) ? 'name server' : kinds.join(' or ');
    if (resolver !== '') resolvers.set(resolver, (resolvers.get(resolver) ?? 0) + 1);
  }
  return {
    clients: counts.size,
    nodes: nodes.size,
    groups: [...groups]
      .toSorted(([, one], [, other]) => other.count - one.count)
      .map(([name, { clients, count }]) => ({ name, clients, share: count / all })),
    resolvers: [...resolvers].toSorted(([, one], [, other]) => other - one),
  };
}

/** Readable names for addresses: `shop/cart-7d4b9c` for a pod or `svc kube-system/kube-dns` for a service. */
import { printHostPort } from '../../../server/base/ip.ts';
import type { Redaction } from '../../../tools/capture/redaction.ts';
import {
  clusterOwners,
  manifestOwners,
  type AddressOwner,
  type AddressOwners,
} from '../../../tools/pods/address-owners.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import { accessOf, type ClusterOptions } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import { coreVersion } from '../version/version.ts';
import { usage } from '../option-values.ts';
import { problemText } from '../problem-text.ts';

export interface NameChoice extends ClusterOptions {
  readonly manifests: string | null;
  readonly cluster: boolean;
}

/**
 * Reads who owns which address, if names were requested.
 * @param note called for each warning
 */
export async function addressOwners(
  choice: NameChoice,
  io: Io,
  note: (text: string) => void,
): Promise<AddressOwners> {
  const { manifests, cluster } = choice;
  if (manifests !== null && cluster) throw usage('--manifests cannot be combined with --cluster');
  if (manifests !== null) return manifestOwners(manifests, (problem) => note(problemText(problem)));
  if (!cluster) return new Map();
  return clusterOwners(accessOf(choice, io), { version: coreVersion, signal: io.signal }, note);
}

export type PeerNaming = (peer: Peer) => string;

/** dnstap programs may omit the server's address, in which case it reads as this one. */
const UNKNOWN = '0.0.0.0';

/** @param redaction also applied to names; null for no redaction */
export function namingOf(owners: AddressOwners, redaction: Redaction | null): PeerNaming {
  const shown = shownOwners(owners, redaction);
  return (peer) => {
    if (peer.address === '' || peer.address === UNKNOWN) return '-';
    const owner = shown.get(peer.address);
    if (owner !== undefined) return `${labelOf(owner)}:${peer.port}`;
    const { address, port } = redaction === null ? peer : redaction.peer(peer);
    return printHostPort(address, port);
  };
}

/** An address's owner, both as text and as separate fields. Unknown fields are empty. */
export interface NamedAddress {
  readonly address: string;
  /** `shop/cart-7d4b9c`, `node node7`. */
  readonly name: string;
  /** `deploy/cart`. */
  readonly workload: string;
  readonly node: string;
}

export type AddressNaming = (address: string) => NamedAddress;

/** @param redaction applied to every field; null for no redaction */
export function addressNamingOf(owners: AddressOwners, redaction: Redaction | null): AddressNaming {
  const shown = shownOwners(owners, redaction);
  return (given) => {
    const address = redaction === null ? given : redaction.address(given);
    const owner = shown.get(given);
    if (owner === undefined) return { address, name: '', workload: '', node: '' };
    return { address, name: labelOf(owner), workload: owner.workload, node: owner.node };
  };
}

/** The owners, with pseudonyms for their names, by original address. */
export function shownOwners(owners: AddressOwners, redaction: Redaction | null): AddressOwners {
  if (redaction === null) return owners;
  const show = (text: string): string => (text === '' ? '' : redaction.name(text));
  const hidden = ({ workload, namespace, name, node, ...owner }: AddressOwner): AddressOwner => {
    const [kind = '', ofKind] = workload.split('/');
    return {
      ...owner,
      namespace: show(namespace),
      name: show(name),
      workload: ofKind === undefined ? show(kind) : `${kind}/${show(ofKind)}`,
      node: show(node),
    };
  };
  return new Map([...owners].map(([address, owner]) => [address, hidden(owner)]));
}

function labelOf({ kind, namespace, name }: AddressOwner): string {
  if (kind === 'pod') return `${namespace}/${name}`;
  return kind === 'service' ? `svc ${namespace}/${name}` : `node ${name}`;
}

/** The present and past owners of addresses. Pods come and go, but their queries stay in the window for longer. */
import type { AddressOwner, AddressOwners } from '../pods/address-owners.ts';
import type { Party } from './view.ts';

/** The number of former owners to store. The oldest is evicted first. */
const GONE_MAX = 20_000;

/** An owner, and the period during which it had its address. */
interface Tenancy {
  readonly party: Party;
  /** Milliseconds since 1970, or Infinity if it still has the address. */
  untilMs: number;
}

export class Parties {
  /** By address, latest last. */
  readonly #tenancies = new Map<string, Tenancy[]>();
  /** Tenancies that have ended, in that order. */
  #gone: { readonly address: string; readonly tenancy: Tenancy }[] = [];
  #owners: ReadonlyMap<string, AddressOwner> = new Map();

  /** @returns the pods that have disappeared since the last call */
  take(owners: AddressOwners, nowMs: number): readonly Party[] {
    const left: Party[] = [];
    for (const [address, owner] of owners) {
      const tenancies = this.#tenancies.get(address) ?? [];
      const last = tenancies.at(-1);
      if (last !== undefined && last.untilMs === Infinity && isSame(last.party, owner)) continue;
      // The first known owner is assumed to have had the address before.
      if (last !== undefined && last.untilMs === Infinity) this.#end(address, last, nowMs, left);
      this.#tenancies.set(address, [
        ...tenancies,
        { party: partyOf(address, owner), untilMs: Infinity },
      ]);
    }
    for (const [address, tenancies] of this.#tenancies) {
      const last = tenancies.at(-1)!;
      if (last.untilMs === Infinity && !owners.has(address)) this.#end(address, last, nowMs, left);
    }
    this.#forget();
    this.#owners = this.#all(owners);
    return left.filter(({ kind }) => kind === 'pod');
  }

  /** Owners by address, for filters. An unused address belongs to its last owner. */
  get owners(): AddressOwners {
    return this.#owners;
  }

  at(address: string, ms: number): Party {
    const tenancies = this.#tenancies.get(address);
    if (tenancies === undefined) return unknownParty(address);
    const found = tenancies.find(({ untilMs }) => ms < untilMs) ?? tenancies.at(-1)!;
    return found.party.isGone || found.untilMs === Infinity
      ? found.party
      : { ...found.party, isGone: true };
  }

  /** Identifies an address's owner at that time by the address and the number of earlier owners. */
  idAt(address: string, ms: number): string {
    const tenancies = this.#tenancies.get(address);
    if (tenancies === undefined || tenancies.length === 1) return address;
    const at = tenancies.findIndex(({ untilMs }) => ms < untilMs);
    return idOf(address, at < 0 ? tenancies.length - 1 : at);
  }

  #end(address: string, tenancy: Tenancy, nowMs: number, left: Party[]): void {
    tenancy.untilMs = nowMs;
    const gone = { address, tenancy };
    this.#gone.push(gone);
    left.push(tenancy.party);
  }

  #forget(): void {
    const many = this.#gone.length - GONE_MAX;
    if (many <= 0) return;
    for (const { address, tenancy } of this.#gone.slice(0, many)) {
      const rest = this.#tenancies.get(address)!.filter((each) => each !== tenancy);
      if (rest.length === 0) this.#tenancies.delete(address);
      else this.#tenancies.set(address, rest);
    }
    this.#gone = this.#gone.slice(many);
  }

  #all(owners: AddressOwners): ReadonlyMap<string, AddressOwner> {
    const all = new Map(owners);
    for (const { address, tenancy } of this.#gone)
      if (!owners.has(address)) all.set(address, ownerOf(tenancy.party));
    return all;
  }
}

/** The address in an ID from `Parties.idAt`. */
export function addressOfId(id: string): string {
  const at = id.indexOf('#');
  return at < 0 ? id : id.slice(0, at);
}

function idOf(address: string, before: number): string {
  return before === 0 ? address : `${address}#${before}`;
}

function partyOf(address: string, { kind, namespace, name, workload, node }: AddressOwner): Party {
  return {
    address,
    kind,
    name: namespace === '' ? name : `${namespace}/${name}`,
    namespace,
    workload,
    node,
    isGone: false,
  };
}

function ownerOf({ kind, namespace, name, workload, node }: Party): AddressOwner {
  return {
    kind: kind === '' ? 'pod' : kind,
    namespace,
    name: namespace === '' ? name : name.slice(namespace.length + 1),
    workload,
    node,
  };
}

function unknownParty(address: string): Party {
  return { address, kind: '', name: '', namespace: '', workload: '', node: '', isGone: false };
}

function isSame(party: Party, owner: AddressOwner): boolean {
  const other = partyOf(party.address, owner);
  return party.kind === other.kind && party.name === other.name && party.node === other.node;
}

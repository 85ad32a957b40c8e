/** The interface that holds the addresses of a node cache. */
import { parseAddress, printAddress } from '../base/ip.ts';
import type { Log } from '../base/log.ts';
import { Problem } from '../base/problem.ts';
import { SystemError } from '../runtime/libc.ts';
import {
  addLink,
  addressesOn,
  findLink,
  noInterfaces,
  putAddress,
  raiseLink,
  removeLink,
  takeAddress,
  type Link,
} from '../runtime/own-interface.ts';

/** The alias of the interface: `ip link show` prints it. */
const ALIAS = 'ndots node-cache';
/**
 * Kinds of interfaces that hold addresses without a wire, the usual first. A bridge without ports
 * serves where the kernel has no dummy devices, and `lo` anywhere.
 */
const KINDS = ['dummy', 'bridge'];
/**
 * Seconds after which the kernel removes an address that was not renewed, with up to a second of
 * delay. Until then it does no harm to pods, because the rules release their queries sooner. The
 * first lease is as long as a start may take.
 */
const LEASE_SECONDS = { FIRST: 60, LATER: 4 };

/** The parts of an interface's set-up. */
export interface LocalInterfaceParts {
  readonly name: string;
  readonly addresses: readonly string[];
  /** True if the kernel removes the addresses if they are not renewed. */
  readonly lease: boolean;
  readonly log: Log;
}

/**
 * Makes the interface, looks after it, and takes it away; nothing else of the machine is touched.
 */
export class LocalInterface {
  readonly #parts: LocalInterfaceParts;
  /** Addresses are on `lo`, because there is no better interface. */
  #loopback = false;
  /** The interface of that name is ours, or was checked and may be used. */
  #ours = false;
  /** Others have addresses on it, so it stays at the end. */
  #shared = false;

  constructor(parts: LocalInterfaceParts) {
    const addresses = parts.addresses.map((address) => printAddress(parseAddress(address)!));
    this.#parts = { ...parts, addresses };
  }

  /**
   * Adds the interface if it is missing, and renews the addresses.
   * @param starting no program listens there yet
   * @returns the missing parts: the interface's name, or addresses
   * @throws Problem, SystemError
   */
  ensure(starting = false): readonly string[] {
    const { addresses, lease } = this.#parts;
    const seconds = starting ? LEASE_SECONDS.FIRST : LEASE_SECONDS.LATER;
    const missing: string[] = [];
    const link = this.#link(missing);
    if (!link.up && !this.#loopback) raiseLink(link.index);
    const present = addressesOn(link.index);
    for (const address of addresses) {
      if (!present.includes(address)) missing.push(address);
      else if (!lease) continue;
      this.#put(link, address, lease ? seconds : null);
    }
    return missing;
  }

  /** Makes the addresses permanent: they need no renewal any more. @throws SystemError */
  leave(): void {
    const link = this.#ours ? findLink(this.#name) : null;
    if (link === null) return;
    for (const address of this.#parts.addresses) putAddress(link.index, address, null);
  }

  /**
   * Removes the addresses, and the interface if there are no other addresses on it.
   * @throws SystemError
   */
  remove(): void {
    const link = this.#ours ? findLink(this.#name) : null;
    if (link === null) return;
    const present = addressesOn(link.index);
    const own = present.filter((address) => this.#parts.addresses.includes(address));
    if (!this.#loopback && own.length === present.length) return removeLink(link.index);
    for (const address of own) takeAddress(link.index, address);
  }

  /** Lines for a shell that do the same. */
  get removal(): readonly string[] {
    if (!this.#loopback && !this.#shared) return [`ip link delete ${this.#name}`];
    return this.#parts.addresses.map((address) => `ip address delete ${address} dev ${this.#name}`);
  }

  get #name(): string {
    return this.#loopback ? 'lo' : this.#parts.name;
  }

  #link(missing: string[]): Link {
    const { name } = this.#parts;
    const present = findLink(this.#name);
    if (present !== null) {
      if (!this.#ours) this.#judge(present);
      return present;
    }
    const without: string[] = [];
    for (const kind of KINDS) {
      try {
        addLink(name, kind, ALIAS);
      } catch (error) {
        if (!(error instanceof SystemError) || error.code !== 'ENOTSUP') throw error;
        without.push(kind);
        continue;
      }
      missing.push(name);
      return this.#made(name, `${name} is a ${kind}`, without);
    }
    this.#loopback = true;
    return this.#made('lo', `the addresses are on lo, and there is no ${name}`, without);
  }

  #made(name: string, what: string, without: readonly string[]): Link {
    if (!this.#ours && without.length > 0) {
      const kinds = without.join(' nor ');
      this.#parts.log.warning(
        `${what}: this kernel has no interfaces of type ${kinds}, and cannot load them`,
      );
    }
    this.#ours = true;
    return findLink(name)!;
  }

  /**
   * An interface of that name existed before: a leftover of ours, one of another node cache, or one
   * of another program.
   */
  #judge({ name, kind, index, alias }: Link): void {
    if (kind !== 'dummy' && alias !== ALIAS) {
      throw new Problem({
        code: 'interface-foreign',
        text: `the interface ${name} is there already, and is ${kind === '' ? 'a device of this machine' : `of type ${kind}`}`,
        hint: 'A node cache makes an interface of type dummy for itself.',
        remedy: `Give it another name: -interfacename NAME; or see whose this is: ip -details link show ${name}`,
      });
    }
    this.#ours = true;
    const others = addressesOn(index).filter((each) => !this.#parts.addresses.includes(each));
    this.#shared = others.length > 0;
    if (!this.#shared) return;
    this.#parts.log.warning(
      `the interface ${name} also has ${others.join(', ')}, which -localip does not name: that address stays, also after shutdown`,
    );
  }

  #put({ index }: Link, address: string, seconds: number | null): void {
    try {
      putAddress(index, address, seconds);
    } catch (error) {
      if (!(error instanceof SystemError) || !address.includes(':')) throw error;
      if (!['EACCES', 'ENOTSUP', 'EAFNOSUPPORT', 'EADDRNOTAVAIL'].includes(error.code)) throw error;
      throw new Problem({
        code: 'no-ipv6',
        text: `${address} cannot be put on ${this.#name}: ${error.code}`,
        hint: 'IPv6 is switched off on this machine, or on this interface.',
        remedy: `Leave it out of -localip, or switch IPv6 on: sysctl net.ipv6.conf.${this.#name}.disable_ipv6=0`,
        cause: error,
      });
    }
  }
}

/** Throws the problem that keeps interfaces from being set up here at all, if there is one. */
export function checkInterfaces(): void {
  const why = noInterfaces();
  if (why === null) return;
  throw new Problem({
    code: 'no-interfaces',
    text: `interfaces cannot be set up here: ${why}`,
    remedy: 'Set it up by other means, and use -setupinterface=false.',
  });
}

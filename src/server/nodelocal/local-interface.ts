/** The interface that holds a node cache's addresses. */
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
} from '../runtime/own-interface.ts';
import type { Link } from '../runtime/links.ts';

/** The interface's alias, as shown by `ip link show`. */
const ALIAS = 'ndots node-cache';
/**
 * Types of interface that can have addresses without a link, starting with the usual one. A bridge without ports works
 * if the kernel has no dummy devices, and `lo` works anywhere.
 */
const KINDS = ['dummy', 'bridge'];
/**
 * Seconds after which the kernel removes an address that was not renewed, with a delay of up to a second. Until then,
 * it does no harm to pods, because the rules release their queries sooner. The first lease is long enough for startup.
 */
const LEASE_SECONDS = { FIRST: 60, LATER: 4 };

export interface LocalInterfaceParts {
  readonly name: string;
  readonly addresses: readonly string[];
  /** True if the kernel should remove the addresses when they are not renewed. */
  readonly lease: boolean;
  readonly log: Log;
}

/** Creates the interface, maintains it, and finally removes it, without affecting anything else on the machine. */
export class LocalInterface {
  readonly #parts: LocalInterfaceParts;
  /** True if addresses are on `lo`, because no better interface is available. */
  #loopback = false;
  /** True if the interface with that name is ours, or has been checked and may be used. */
  #ours = false;
  /** True if other programs have addresses on it, in which case it stays at the end. */
  #shared = false;

  constructor(parts: LocalInterfaceParts) {
    const addresses = parts.addresses.map((address) => printAddress(parseAddress(address)!));
    this.#parts = { ...parts, addresses };
  }

  /**
   * Adds the interface if it is missing, and renews the addresses.
   * @param starting true if no program is listening there yet
   * @returns the parts that were missing: the interface's name, or addresses
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

  /**
   * Makes the addresses permanent, so that they need not be renewed.
   * @throws SystemError
   */
  leave(): void {
    const link = this.#ours ? findLink(this.#name) : null;
    if (link === null) return;
    for (const address of this.#parts.addresses) putAddress(link.index, address, null);
  }

  /**
   * Removes the addresses, and also the interface if it has no others.
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

  /** Shell commands that do the same. */
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
   * Checks an existing interface with that name. It may be left over from an earlier run, or belong to another node
   * cache or program.
   */
  #judge({ name, kind, index, alias }: Link): void {
    if (kind !== 'dummy' && alias !== ALIAS) {
      throw new Problem({
        code: 'interface-foreign',
        text: `the interface ${name} already exists and is ${kind === '' ? 'a device on this machine' : `of type ${kind}`}`,
        hint: 'A node cache creates its own dummy interface.',
        remedy: `Use another name (-interfacename NAME), or determine what uses this one: ip -details link show ${name}`,
      });
    }
    this.#ours = true;
    const others = addressesOn(index).filter((each) => !this.#parts.addresses.includes(each));
    this.#shared = others.length > 0;
    if (!this.#shared) return;
    this.#parts.log.warning(
      `the interface ${name} also has ${others.join(', ')}, which -localip does not include, so that address stays even after shutdown`,
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
        hint: 'IPv6 is disabled on this machine, or on this interface.',
        remedy: `Remove it from -localip, or enable IPv6: sysctl net.ipv6.conf.${this.#name}.disable_ipv6=0`,
        cause: error,
      });
    }
  }
}

/** Throws the problem, if there is one, that prevents interfaces from being set up here at all. */
export function checkInterfaces(): void {
  const why = noInterfaces();
  if (why === null) return;
  throw new Problem({
    code: 'no-interfaces',
    text: `interfaces cannot be set up here: ${why}`,
    remedy: 'Set it up by other means, and use -setupinterface=false.',
  });
}

/**
 * A lab's machines and the links between them, made of network namespaces, veth pairs and routes. All are inside the
 * lab's own network namespace, separate from this machine's network.
 */
import { writeFileSync } from 'node:fs';
import { inNetworkNamespace } from '../../server/runtime/network-namespace.ts';
import { must } from './commands.ts';

/** The router address for all pods. Each node has it on its end of each pod's link. */
const ROUTER = '169.254.1.1';
const ROUTER_V6 = 'fe80::1';
const BRIDGE = 'cluster';

/** A node, a pod, or a host outside the cluster. */
export interface Machine {
  readonly name: string;
  readonly addresses: readonly string[];
}

export class LabNetwork {
  /** Nodes and hosts, which share a network. Pods are behind nodes. */
  readonly #neighbours: Machine[] = [];
  /** The saved routes of disconnected machines. */
  readonly #ways = new Map<string, readonly string[]>();
  #links = 0;

  constructor() {
    must(
      ['ip', '-batch', '-'],
      `link set lo up\nlink add ${BRIDGE} type bridge\nlink set ${BRIDGE} up\n`,
    );
  }

  /** Adds a machine to the nodes' network, where it can reach all others. */
  addHost(name: string, addresses: readonly string[]): Machine {
    const machine = { name, addresses };
    const link = this.#link(name);
    must(['ip', '-batch', '-'], `link set ${link} master ${BRIDGE}\nlink set ${link} up\n`);
    const lines = addresses.map(
      (address) => `addr add ${withLength(address)} dev eth0${nodad(address)}`,
    );
    for (const other of this.#neighbours) {
      lines.push(...other.addresses.map((address) => `route add ${withLength(address)} dev eth0`));
      this.batch(
        other.name,
        addresses.map((address) => `route add ${withLength(address)} dev eth0`),
      );
    }
    this.batch(name, lines);
    this.#neighbours.push(machine);
    return machine;
  }

  /** Adds a machine that routes packets for pods. */
  addNode(name: string, addresses: readonly string[]): Machine {
    const node = this.addHost(name, addresses);
    this.set(name, 'net/ipv4/ip_forward', '1');
    // When a node itself sends packets to a service, it needs a route before its rules translate the address.
    this.batch(name, ['route add default dev eth0']);
    this.set(name, 'net/ipv6/conf/all/forwarding', '1');
    return node;
  }

  /** Adds a machine behind a node, and a route to it on all other nodes. */
  addPod(name: string, addresses: readonly string[], node: Machine): Machine {
    const link = this.#link(name);
    must(['ip', 'link', 'set', link, 'netns', node.name]);
    this.batch(node.name, [
      `link set ${link} up`,
      `addr add ${ROUTER}/32 dev ${link}`,
      `addr add ${ROUTER_V6}/64 dev ${link} nodad`,
      ...addresses.map((address) => `route add ${withLength(address)} dev ${link}`),
    ]);
    this.batch(name, [
      ...addresses.map((address) => `addr add ${withLength(address)} dev eth0${nodad(address)}`),
      `route add ${ROUTER} dev eth0 scope link`,
      `route add default via ${ROUTER} dev eth0`,
      ...(addresses.some(isIPv6) ? [`route add ::/0 via ${ROUTER_V6} dev eth0`] : []),
    ]);
    for (const other of this.#neighbours) {
      if (other === node) continue;
      const lines = addresses.flatMap((address) => {
        const via = node.addresses.find((one) => isIPv6(one) === isIPv6(address));
        return via === undefined ? [] : [`route add ${withLength(address)} via ${via} dev eth0`];
      });
      this.batch(other.name, lines);
    }
    return { name, addresses };
  }

  /** Runs ip(8) commands in a machine. */
  batch(machine: string, lines: readonly string[]): void {
    if (lines.length > 0) must(['ip', '-n', machine, '-batch', '-'], `${lines.join('\n')}\n`);
  }

  /** Sets one of a machine's kernel parameters under /proc/sys, such as `net/ipv4/ip_forward`. */
  set(machine: string, key: string, value: string): void {
    inNetworkNamespace(this.path(machine), () => {
      writeFileSync(`/proc/sys/${key}`, value);
    });
  }

  /** Disconnects a machine, or reconnects it and restores the routes that were lost with its link. */
  setLink(machine: string, state: 'up' | 'down'): void {
    if (state === 'down') {
      const [four, six] = ['-4', '-6'].map((family) =>
        must(['ip', '-n', machine, family, 'route', 'show', 'dev', 'eth0']),
      );
      // Otherwise, the IPv6 addresses would be lost with the link.
      this.set(machine, 'net/ipv6/conf/all/keep_addr_on_down', '1');
      this.#ways.set(machine, [four ?? '', six ?? '']);
      return this.batch(machine, ['link set eth0 down']);
    }
    this.batch(machine, ['link set eth0 up']);
    (this.#ways.get(machine) ?? []).forEach((text) => {
      const lines = text
        .split('\n')
        .filter((line) => line.trim() !== '' && !/proto kernel/.test(line));
      // The kernel may not have assigned the router's link-local address yet, so `onlink` skips that check.
      this.batch(
        machine,
        lines.map(
          (line) => `route replace ${line.trim()} dev eth0${/ via /.test(line) ? ' onlink' : ''}`,
        ),
      );
    });
    this.#ways.delete(machine);
  }

  /** Runs a program in a machine's network with the machine's files. The program must succeed. */
  run(machine: string, words: readonly string[], input = ''): string {
    return must(['nsenter', `--net=${this.path(machine)}`, '--', ...words], input);
  }

  /** The file of a machine's network namespace. */
  path(machine: string): string {
    return `/run/netns/${machine}`;
  }

  /**
   * Creates a namespace with a link into it.
   * @returns the name of the link's outer end
   */
  #link(name: string): string {
    const link = `v${++this.#links}`;
    must(['ip', 'netns', 'add', name]);
    must(['ip', '-batch', '-'], `link add ${link} type veth peer name eth0 netns ${name}\n`);
    this.batch(name, ['link set lo up', 'link set eth0 up']);
    return link;
  }
}

function isIPv6(address: string): boolean {
  return address.includes(':');
}

function withLength(address: string): string {
  return isIPv6(address) ? `${address}/128` : `${address}/32`;
}

/** Skips duplicate address detection, so that an IPv6 address can be used immediately. */
function nodad(address: string): string {
  return isIPv6(address) ? ' nodad' : '';
}

import type { Random } from '../../src/server/base/random.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';

/**
 * Random objects for a small cluster, in API format: services of every kind, with slices that match, mismatch, overlap,
 * or belong to no service.
 */
export interface RandomCluster {
  readonly objects: readonly KubeJson[];
  /** Names to query: those that the objects may produce, similar ones, and some that never exist. */
  readonly names: readonly string[];
}

const spaces = ['shop', 'web', 'empty', 'svc'] as const;
const portNames = ['http', 'dns', 'https-alt'] as const;
const protocols = ['TCP', 'UDP', 'SCTP'] as const;
const hostnames = ['db-0', 'db-1', 'a'] as const;
const zones = ['zone-a', 'zone-b'] as const;

/** @param zone the cluster's zone, with a trailing dot */
export function randomCluster(random: Random, zone: string): RandomCluster {
  return new Draft(random, zone).draw();
}

class Draft {
  readonly #random: Random;
  readonly #zone: string;
  readonly #objects: KubeJson[] = [];
  readonly #names = new Set<string>();
  /** Each cluster address is used only once. */
  #address = 10;

  constructor(random: Random, zone: string) {
    this.#random = random;
    this.#zone = zone;
  }

  draw(): RandomCluster {
    for (const name of spaces)
      this.#add('Namespace', 'v1', { name, labels: this.#chance(2) ? { tier: 'front' } : {} });
    for (let nth = 0; nth < 28; nth++) this.#service(`s${nth}`, this.#pick(spaces));
    for (let nth = 0; nth < 6; nth++) this.#slice(`orphan${nth}`, this.#pick(spaces), 'nothing');
    for (let nth = 0; nth < 10; nth++) this.#pod(`p${nth}`, this.#pick(spaces));
    this.#beside();
    return { objects: this.#objects, names: [...this.#names] };
  }

  #pick<T>(of: readonly T[]): T {
    return of[this.#random.integer(of.length)]!;
  }

  #chance(times: number): boolean {
    return this.#random.integer(times) === 0;
  }

  #add(kind: string, apiVersion: string, metadata: object, rest: object = {}): void {
    this.#objects.push({ apiVersion, kind, metadata, ...rest } as unknown as KubeJson);
  }

  #ask(...labels: readonly string[]): void {
    this.#names.add(`${labels.join('.')}.${this.#zone}`);
  }

  #ports(many: number): object[] {
    return Array.from({ length: many }, (_, nth) => ({
      ...(many > 1 || this.#chance(2) ? { name: portNames[nth] } : {}),
      port: 80 + nth,
      protocol: this.#pick(protocols),
    }));
  }

  #service(name: string, namespace: string): void {
    const labels = this.#chance(3) ? { app: 'x' } : {};
    const ports = this.#ports(1 + this.#random.integer(3));
    const kind = this.#random.integer(7);
    const spec = this.#spec(kind, ports);
    this.#add('Service', 'v1', { name, namespace, labels }, { spec });
    for (let nth = this.#random.integer(4); nth > 0; nth--)
      this.#slice(`${name}-${nth}`, namespace, name, ports);
    const base = [name, namespace, 'svc'];
    this.#ask(...base);
    for (const port of [...portNames, 'none'])
      for (const protocol of ['tcp', 'udp', 'sctp'] as const)
        if (port === portNames[0] || this.#chance(3))
          this.#ask(`_${port}`, `_${protocol}`, ...base);
    this.#ask('_tcp', ...base);
    this.#ask('http', 'tcp', ...base);
    for (const label of ['nobody', ...hostnames]) this.#ask(label, ...base);
    this.#ask('*', ...base);
    this.#ask(name, namespace, 'pod');
    this.#ask(name, namespace);
    this.#ask(name, 'nowhere', 'svc');
    for (const zoneName of [...zones, 'zone-c'])
      for (const how of ['pin', 'prefer'])
        if (this.#chance(4)) this.#ask(zoneName, how, '_zone', ...base);
  }

  #spec(kind: number, ports: object[]): object {
    const host = this.#address++;
    const four = `10.0.0.${host}`;
    const six = `fd00:10::${(0x100 + host).toString(16)}`;
    if (kind < 3) this.#reverse(four);
    switch (kind) {
      case 0:
        return { clusterIP: four, clusterIPs: [four], ipFamilies: ['IPv4'], ports };
      case 1:
        this.#reverse(six);
        return {
          clusterIP: four,
          clusterIPs: [four, six],
          ipFamilies: ['IPv4', 'IPv6'],
          ipFamilyPolicy: 'RequireDualStack',
          ports,
        };
      case 2:
        this.#reverse(`203.0.113.${host}`);
        return {
          clusterIP: four,
          clusterIPs: [four],
          ipFamilies: ['IPv4'],
          externalIPs: [`203.0.113.${host}`],
          ports,
        };
      case 3: {
        const targets = [
          'ext.example.org',
          'gone.example.org',
          'EXT.Example.org',
          `s1.${spaces[0]}.svc.${this.#zone}`,
        ];
        const externalName = this.#pick(targets).replace(/\.$/, '').toLowerCase();
        return { type: 'ExternalName', externalName, ...(this.#chance(2) && { ports }) };
      }
      default:
        return {
          clusterIP: 'None',
          clusterIPs: ['None'],
          ...(this.#chance(3) ? {} : { ports }),
          ...(this.#chance(4) && { publishNotReadyAddresses: true }),
        };
    }
  }

  #slice(name: string, namespace: string, service: string, ports: readonly object[] = []): void {
    const six = this.#chance(3);
    const taken = new Set<number>();
    const host = (): string => {
      let number = this.#random.integer(24);
      while (taken.has(number)) number = (number + 1) % 24;
      taken.add(number);
      const address = six ? `fd00:20::${(number + 1).toString(16)}` : `10.20.0.${number}`;
      this.#reverse(address);
      this.#ask(address.replaceAll(/[.:]/g, '-'), service, namespace, 'svc');
      this.#ask(address.replaceAll(/[.:]/g, '-'), namespace, 'pod');
      return address;
    };
    const endpoints = Array.from({ length: this.#random.integer(5) }, () => {
      const pod = `${service}-${this.#random.integer(4)}`;
      const isPod = this.#chance(2);
      if (isPod) this.#ask(pod, service, namespace, 'svc');
      return {
        addresses: [host()],
        ...(this.#chance(3) && { hostname: this.#pick(hostnames) }),
        ...(this.#chance(2) && {
          conditions: { ready: this.#chance(2), serving: this.#chance(2) },
        }),
        ...(isPod && { targetRef: { kind: 'Pod', name: pod, namespace } }),
        ...(this.#chance(2) && { zone: this.#pick(zones) }),
        ...(this.#chance(3) && { nodeName: 'node-1' }),
      };
    });
    this.#add(
      'EndpointSlice',
      'discovery.k8s.io/v1',
      { name, namespace, labels: { 'kubernetes.io/service-name': service } },
      {
        addressType: six ? 'IPv6' : 'IPv4',
        endpoints,
        ports: this.#chance(4) ? [] : ports.length > 0 ? ports : this.#ports(1),
      },
    );
  }

  #pod(name: string, namespace: string): void {
    const address = `10.20.0.${this.#random.integer(24)}`;
    this.#ask(address.replaceAll('.', '-'), namespace, 'pod');
    this.#add(
      'Pod',
      'v1',
      { name, namespace },
      {
        spec: { containers: [{ name: 'c', image: 'i' }], hostNetwork: this.#chance(4) },
        status: {
          phase: this.#pick(['Running', 'Pending', 'Succeeded']),
          podIP: address,
          podIPs: [{ ip: address }],
        },
      },
    );
  }

  #reverse(address: string): void {
    this.#names.add(reverseName(address));
  }

  #beside(): void {
    for (const labels of [
      ['svc'],
      ['pod'],
      ['ns', 'dns'],
      ['dns'],
      ['dns-version'],
      ['x'],
      ['x', 'y', 'z', 'svc'],
      ['a', 'b', 'c', 'd', 'svc'],
    ])
      this.#ask(...labels);
    this.#names.add(this.#zone);
    for (const space of [...spaces, 'nowhere'])
      for (const kind of ['svc', 'pod'])
        for (const before of [
          [],
          ['*'],
          ['1-2-3-4'],
          ['1-2-3'],
          ['fd00--1'],
          ['999-1-1-1'],
          ['x', '1-2-3-4'],
        ])
          this.#ask(...before, space, kind);
    for (const address of ['10.0.0.1', '10.0.255.1', '10.20.1.1', '192.0.2.1', 'fd00:10::1'])
      this.#reverse(address);
    for (const name of [
      '10.in-addr.arpa.',
      '0.10.in-addr.arpa.',
      'x.0.0.10.in-addr.arpa.',
      'ip6.arpa.',
      'ext.example.org.',
    ])
      this.#names.add(name);
  }
}

/** Converts `10.0.0.1` to `1.0.0.10.in-addr.arpa.`, and IPv6 addresses with one `::` to `ip6.arpa.` names. */
function reverseName(address: string): string {
  if (!address.includes(':')) return `${address.split('.').toReversed().join('.')}.in-addr.arpa.`;
  const [head = '', tail = ''] = address.split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const zeros = 8 - groups(head).length - groups(tail).length;
  const digits = [...groups(head), ...Array<string>(zeros).fill('0'), ...groups(tail)]
    .map((group) => group.padStart(4, '0'))
    .join('');
  return `${Array.from(digits).toReversed().join('.')}.ip6.arpa.`;
}

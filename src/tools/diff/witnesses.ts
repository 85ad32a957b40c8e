/**
 * Generates the queries that distinguish two configurations. They cover names inside, at and outside every zone, block,
 * rewrite, template, host, rule and boundary on either side. The cluster's objects are covered as well.
 */
import { parseNet, printAddress } from '../../server/base/ip.ts';
import type { Corefile, Directive, Property } from '../../server/corefile/corefile-tree.ts';
import { absoluteName, expandZone, isDomainName } from '../../server/corefile/zones.ts';
import { TYPE, typeNumber } from '../../server/wire/iana.ts';
import { samplesOf } from './pattern-samples.ts';
import type { DiffQuestion } from './question.ts';
import { failingTypes, marks } from './script.ts';

export interface WitnessParts {
  readonly corefiles: readonly Corefile[];
  /** Names of objects in the cluster, with the types that they have. */
  readonly objects: readonly NamedType[];
  /** Pod addresses to use as clients. The first one is used for every question. */
  readonly clients: readonly string[];
  /** Names that the user asked about. */
  readonly names: readonly NamedType[];
  /** The listeners of either side. */
  readonly places: readonly { readonly address: string; readonly port: number }[];
}

export interface NamedType {
  readonly name: string;
  readonly types: readonly number[];
}

/** More questions would take longer than anyone waits. */
const QUESTIONS_MAX = 60_000;

export interface Witnesses {
  readonly questions: readonly DiffQuestion[];
  /** Skipped questions, described for the user. */
  readonly left: readonly string[];
}

/** The questions, deduplicated, simplest first. */
export function witnesses(parts: WitnessParts): Witnesses {
  const found = new GatheredNames();
  for (const corefile of parts.corefiles)
    for (const { keys, directives } of corefile.blocks) {
      const zones = [...new Set(keys.map(({ zone }) => zone))];
      for (const zone of zones) found.zone(zone);
      for (const directive of directives) found.directive(directive, zones);
    }
  return found.questions(parts);
}

const usualTypes: readonly number[] = [TYPE.A, TYPE.AAAA];
const { MX, TXT, SRV, PTR, SOA, NS, HTTPS, CNAME, ANY } = TYPE;
/** Queried for a few names in each zone. */
const rareTypes: readonly number[] = [MX, TXT, SRV, PTR, SOA, NS, HTTPS, CNAME, ANY];

/** Directives and their properties that are followed by zones. */
const ofZones: ReadonlySet<string> = new Set([
  ...['acl', 'auto', 'autopath', 'cache', 'dns64', 'dnssec', 'etcd', 'file', 'forward', 'hosts'],
  ...['kubernetes', 'log', 'secondary', 'template'],
]);
const linesOfZones: ReadonlySet<string> = new Set(['disable', 'except', 'fallthrough']);

/** Queried in class CH. */
const chaosNames = [
  'version.bind.',
  'hostname.bind.',
  'id.server.',
  'version.server.',
  'authors.bind.',
];

/** A range as written, or the one that contains only this address. */
export function rangeOf(text: string): string {
  return text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
}

class GatheredNames {
  /** Names derived from boundaries. */
  readonly #names = new Set<string>();
  /** Names queried with every type. */
  readonly #probes = new Set<string>();
  /** Names from the current rewrite. */
  readonly #latest = new Set<string>();
  /** Names whose response code may change. */
  readonly #failing = new Set<string>();
  readonly #types = new Set<number>(usualTypes);
  readonly #clients = new Set<string>();
  readonly #sizes = new Set<number>([0, 1232]);

  zone(zone: string): void {
    const below = zone === '.' ? '' : zone;
    this.#name(zone);
    this.#probe(`www.${below || 'example.com.'}`);
    this.#name(`a.b.c.${below || 'example.org.'}`);
    for (const mark of Object.values(marks)) this.#name(`${mark}x.${below || 'example.com.'}`);
    // A sibling name.
    const [, ...parent] = below.split('.');
    if (below !== '' && parent.length > 1) {
      this.#name(`www.${parent.join('.')}`);
      this.#name(`x${below}`);
    }
    if (/(in-addr|ip6)\.arpa\.$/.test(below)) this.#reverse(below);
  }

  directive({ name, args, block }: Directive, zones: readonly string[]): void {
    for (const { text } of args) this.#word(text);
    for (const { text } of name === 'template' ? args.slice(2) : args)
      if (ofZones.has(name)) this.#label(text);
    for (const line of block ?? []) this.#line(name, line);
    const words = args.map(({ text }) => text);
    switch (name) {
      case 'rewrite':
        this.#rewrite(words, zones);
        for (const line of block ?? [])
          this.#rewrite([line.name.text, ...line.args.map(({ text }) => text)], zones);
        break;
      case 'template':
        this.#type(words[1] ?? '');
        for (const line of block ?? [])
          if (line.name.text === 'match')
            for (const { text } of line.args) this.#pattern(text, zones);
        break;
      case 'view':
        for (const line of block ?? [])
          this.#expression(line.args.map(({ text }) => text).join(' '));
        break;
      case 'local':
        this.#probe('localhost.');
        this.#name('localhost.example.com.');
        this.#name('1.0.0.127.in-addr.arpa.');
        break;
      case 'dns64':
        // It usually applies to IPv6-only clients.
        this.#clients.add('2001:db8::7');
        this.#probe(`${marks.onlyIPv4}x.example.com.`);
        break;
      case 'bufsize':
        this.#sizes.add(4096);
        this.#sizes.add(512);
        break;
      default:
    }
  }

  #line(directive: string, { name, args, block }: Property): void {
    const words = [name.text, ...args.map(({ text }) => text)];
    for (const text of words) this.#word(text);
    // Zones may be preceded by an option, as in disable success ZONE….
    const zones = name.text === 'disable' ? args.slice(1) : args;
    if (linesOfZones.has(name.text)) for (const { text } of zones) this.#label(text);
    if (directive === 'hosts') for (const text of words) this.#host(text);
    if (directive === 'acl')
      for (const text of words) {
        this.#net(text);
        this.#type(text);
      }
    for (const inner of block ?? []) this.#line(directive, inner);
  }

  /** Handles a word that may be a zone. */
  #word(text: string): void {
    if (!text.includes('.') && !text.includes('/')) return;
    if (text.startsWith('/') || text.includes('://')) return;
    const zones = expandZone(text);
    if (zones !== null && zones.length <= 16 && !/^[\d.:]+$/.test(text))
      for (const zone of zones) this.zone(zone);
  }

  /** Handles single-label zones such as `corp` or `lan`. Elsewhere, such a word would be a setting. */
  #label(text: string): void {
    if (/^[a-z](?:[a-z0-9-]*[a-z0-9])?$/i.test(text)) this.zone(absoluteName(text.toLowerCase()));
  }

  #host(text: string): void {
    const range = rangeOf(text);
    if (parseNet(range) !== null) {
      for (const zone of expandZone(range) ?? []) this.#name(zone);
      return;
    }
    if (!isDomainName(text)) return;
    const name = absoluteName(text.replace(/^\*\./, 'any.'));
    this.#probe(name);
    this.#name(`sub.${name}`);
  }

  #rewrite(given: readonly string[], zones: readonly string[]): void {
    this.#latest.clear();
    this.#rewritten(given, zones);
    const names = [...this.#latest];
    if (given.includes('rcode'))
      for (const name of names) {
        this.#failing.add(name);
        this.#name(`${marks.nxdomain}${name}`);
      }
    // The answers an upstream may give.
    if (given.includes('cname')) for (const name of names) this.#name(`${marks.to}${name}`);
  }

  #rewritten(given: readonly string[], zones: readonly string[]): void {
    const words = given[0] === 'stop' || given[0] === 'continue' ? given.slice(1) : given;
    const [field = '', kind = '', ...rest] = words;
    if (field === 'type' || field === 'class') for (const text of words) this.#type(text);
    if (!['name', 'ttl', 'cname', 'rcode'].includes(field)) return;
    const from = ['exact', 'prefix', 'suffix', 'substring', 'regex'].includes(kind)
      ? rest[0]
      : kind;
    if (from === undefined || from === '') return;
    const tail = zones.find((zone) => zone !== '.') ?? 'example.com.';
    switch (kind) {
      case 'prefix':
        // CoreDNS appends a dot, so that the text matches whole labels.
        for (const head of [from, absoluteName(from)]) {
          this.#name(absoluteName(`${head}x.${tail}`));
          this.#name(absoluteName(`${head}${tail}`));
        }
        break;
      case 'suffix':
        this.#name(absoluteName(`x${from}`));
        this.#name(absoluteName(`a.b${from.startsWith('.') ? '' : '.'}${from}`));
        break;
      case 'substring':
        this.#name(absoluteName(`x${from}y.${tail}`));
        this.#name(absoluteName(`x.${from}`));
        this.#name(absoluteName(from));
        break;
      case 'regex':
        this.#pattern(from, zones);
        break;
      default:
        this.#probe(absoluteName(from));
        this.#name(absoluteName(`sub.${from}`));
    }
    const to = rest.at(kind === from ? 0 : 1);
    if (to !== undefined && isDomainName(to) && !to.includes('{')) this.#name(absoluteName(to));
  }

  #pattern(pattern: string, zones: readonly string[]): void {
    const tail = zones.find((zone) => zone !== '.') ?? 'example.com.';
    for (const sample of samplesOf(pattern)) {
      this.#name(absoluteName(sample));
      this.#name(absoluteName(`${sample.replace(/\.$/, '')}.${tail}`));
      this.#name(absoluteName(`x.${sample}`));
    }
  }

  /** Collects the addresses, names and types that an expression compares with. */
  #expression(text: string): void {
    for (const [, quoted = ''] of text.matchAll(/['"]([^'"]{1,255})['"]/g)) {
      this.#net(quoted);
      this.#type(quoted);
      if (quoted.includes('.') && isDomainName(quoted)) this.#name(absoluteName(quoted));
      for (const sample of samplesOf(quoted)) this.#name(absoluteName(sample));
    }
  }

  #type(text: string): void {
    const type = typeNumber(text.toUpperCase());
    if (type !== null && /^[A-Za-z]/.test(text)) this.#types.add(type);
  }

  /** Adds a range's first and last address, and one outside it. */
  #net(text: string): void {
    const net = parseNet(rangeOf(text));
    if (net === null) return;
    const inside = net.bytes.slice();
    const size = inside.length * 8;
    if (net.bits < size) inside[inside.length - 1]! |= 1;
    this.#clients.add(printAddress(inside));
    const outside = net.bytes.slice();
    if (net.bits > 0) {
      const at = (net.bits - 1) >> 3;
      outside[at]! ^= 1 << (7 - ((net.bits - 1) & 7));
      this.#clients.add(printAddress(outside));
    }
  }

  #reverse(zone: string): void {
    const labels = zone.split('.').length - 3;
    const missing = zone.endsWith('in-addr.arpa.') ? 4 - labels : 32 - labels;
    if (missing > 0) this.#name(`${'7.'.repeat(missing)}${zone}`);
  }

  #name(name: string): void {
    if (!isDomainName(name)) return;
    this.#names.add(name.toLowerCase());
    this.#latest.add(name.toLowerCase());
  }

  #probe(name: string): void {
    this.#name(name);
    if (isDomainName(name)) this.#probes.add(name.toLowerCase());
  }

  questions({ objects, clients, names, places }: WitnessParts): Witnesses {
    const [usual = '10.244.0.10', ...others] = clients;
    const found = new Map<string, DiffQuestion>();
    let isCut = false;
    const add = (question: DiffQuestion): void => {
      const key = Object.values(question).join(' ');
      if (found.size < QUESTIONS_MAX) found.set(key, question);
      else isCut ||= !found.has(key);
    };
    const types = [...this.#types];
    const usually = { class: 1, client: usual, proto: 'udp', udpSize: 0, dnssecOk: false } as const;
    const asked = places.map(({ address, port }) => ({ ...usually, address, port }));
    this.zone('.');
    for (const plain of asked) {
      for (const name of this.#names) for (const type of types) add({ ...plain, name, type });
      for (const name of this.#names) add({ ...plain, name, type: TYPE.PTR });
      for (const name of this.#failing)
        for (const type of failingTypes.keys()) add({ ...plain, name, type });
      for (const name of this.#probes) for (const type of rareTypes) add({ ...plain, name, type });
      for (const name of this.#probes) {
        for (const client of [...this.#clients, ...others])
          for (const type of types) add({ ...plain, name, type, client });
        add({ ...plain, name, type: TYPE.A, dnssecOk: true, udpSize: 1232 });
        add({ ...plain, name, type: TYPE.A, proto: 'tcp' });
      }
      for (const udpSize of this.#sizes)
        add({ ...plain, name: `${marks.large}x.example.com.`, type: TYPE.A, udpSize });
      for (const name of chaosNames) add({ ...plain, name, type: TYPE.TXT, class: 3 });
    }
    // These follow the names from the configurations, because there may be too many of them.
    for (const { name, types: own } of [...objects, ...names])
      for (const type of own) for (const plain of asked) add({ ...plain, name, type });
    return {
      questions: [...found.values()].toSorted(
        (a, b) => a.name.length - b.name.length || a.type - b.type,
      ),
      left: isCut ? [`queries after the first ${QUESTIONS_MAX} (give fewer names)`] : [],
    };
  }
}

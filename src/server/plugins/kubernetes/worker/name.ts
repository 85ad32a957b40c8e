/** Parses the labels of a name below the zone. */
import { printLabel } from '../../../wire/name.ts';

/** The form of the labels below a zone, whether or not the name exists. */
export type NameShape =
  | 'apex'
  /** `svc` or `pod`. */
  | 'kind'
  /** `NS.svc` or `NS.pod`. */
  | 'namespace'
  /** `SVC.NS.svc`, one of its endpoints or ports, or `IP.NS.pod`. */
  | 'object'
  | 'dns-version'
  /** `ns.dns`, this server's name. */
  | 'name-server'
  /** `dns`, which has no records but is the parent of `ns.dns`. */
  | 'dns'
  | 'other';

export interface Grammar {
  readonly multicluster: boolean;
  readonly zonal: boolean;
}

/** Maximum number of labels in a name, which follows from its limit of 255 bytes (RFC 1035, section 2.3.4). */
const LABELS_MAX = 128;
const NONE = -1;

/**
 * The parts of a query's name below a zone, as offsets of labels (their length byte) in the folded
 * name: no strings are made. Reusable. Offsets are -1 for missing parts.
 *
 *     apex | svc | pod | NS.svc | NS.pod | dns-version | ns.dns
 *     SVC.NS.svc    EP.SVC.NS.svc    _PORT._PROTO.SVC.NS.svc      (underscores are optional)
 *     EP.CLUSTER.SVC.NS.svc                                       (multicluster zones, no underscores)
 *     TOPOZONE.(pin|prefer)._zone.SVC.NS.svc                      (zonal; TOPOZONE may be several labels)
 *     IP-WITH-DASHES.NS.pod                                       (as CoreDNS, up to two more labels are ignored)
 */
export class ParsedName {
  shape: NameShape = 'other';
  /** True if the kind label is `pod`. */
  pod = false;
  namespace: number = NONE;
  object: number = NONE;
  endpoint: number = NONE;
  cluster: number = NONE;
  port: number = NONE;
  protocol: number = NONE;
  /** The topology zone: labels from here to `topologyEnd`. */
  topology: number = NONE;
  topologyEnd: number = NONE;
  prefer = false;
  /** Offsets of the labels below the zone, from left to right. */
  readonly labels: Uint8Array<ArrayBuffer> = new Uint8Array(LABELS_MAX);
  count = 0;

  /** Parses `folded[0, zoneAt)`. */
  read(folded: Uint8Array, zoneAt: number, grammar: Grammar): this {
    this.#clear();
    let count = 0;
    for (let at = 0; at < zoneAt; at += folded[at]! + 1) this.labels[count++] = at;
    this.count = count;
    this.shape = count === 0 ? 'apex' : this.#shape(folded, count, grammar);
    return this;
  }

  #clear(): void {
    this.pod = false;
    this.prefer = false;
    this.namespace = NONE;
    this.object = NONE;
    this.endpoint = NONE;
    this.cluster = NONE;
    this.port = NONE;
    this.protocol = NONE;
    this.topology = NONE;
    this.topologyEnd = NONE;
  }

  #shape(folded: Uint8Array, count: number, grammar: Grammar): NameShape {
    const { labels } = this;
    const kind = labels[count - 1]!;
    if (isLabel(folded, kind, POD)) this.pod = true;
    else if (!isLabel(folded, kind, SVC)) return special(folded, labels, count);
    if (count === 1) return 'kind';
    this.namespace = labels[count - 2]!;
    if (count === 2) return 'namespace';
    this.object = labels[count - 3]!;
    if (count === 3) return 'object';
    if (this.pod) return count <= 5 ? 'object' : 'other';
    return this.#below(folded, count - 3, grammar) ? 'object' : 'other';
  }

  /** Returns the topology zone, whose labels `print` returns; empty if there is none. */
  topologyText(folded: Uint8Array, print: typeof labelText): string {
    const labels: string[] = [];
    for (let at = this.topology; at >= 0 && at < this.topologyEnd; at += folded[at]! + 1)
      labels.push(print(folded, at));
    return labels.join('.');
  }

  /** Parses the first `left` labels, which are below a service. */
  #below(folded: Uint8Array, left: number, { multicluster, zonal }: Grammar): boolean {
    const { labels } = this;
    if (left === 1) {
      this.endpoint = labels[0]!;
      return true;
    }
    if (left === 2) {
      const first = labels[0]!;
      const second = labels[1]!;
      if (multicluster && folded[first + 1] !== UNDERSCORE && folded[second + 1] !== UNDERSCORE) {
        this.endpoint = first;
        this.cluster = second;
      } else {
        // As in CoreDNS, a lone underscore matches any port or protocol.
        this.port = isLabel(folded, first, BARE) ? NONE : first;
        this.protocol = isLabel(folded, second, BARE) ? NONE : second;
      }
      return true;
    }
    if (!zonal || multicluster || !isLabel(folded, labels[left - 1]!, ZONE)) return false;
    const directive = labels[left - 2]!;
    this.prefer = isLabel(folded, directive, PREFER);
    if (!this.prefer && !isLabel(folded, directive, PIN)) return false;
    this.topology = 0;
    this.topologyEnd = directive;
    return true;
  }
}

/** Returns the label at `at` as text, or an empty text for -1. */
export function labelText(folded: Uint8Array, at: number): string {
  return at < 0 ? '' : printLabel(folded, at + 1, at + 1 + folded[at]!);
}

/** Returns a label's unescaped characters; empty for -1. */
export function labelBytes(folded: Uint8Array, at: number): string {
  if (at < 0) return '';
  let text = '';
  for (let i = at + 1, end = i + folded[at]!; i < end; i++) text += String.fromCharCode(folded[i]!);
  return text;
}

/** True if the label, ignoring a leading underscore, equals this lower-case text. A label of -1 always matches. */
export function fits(folded: Uint8Array, label: number, text: string): boolean {
  if (label < 0) return true;
  let at = label + 1;
  const end = at + folded[label]!;
  if (folded[at] === UNDERSCORE) at++;
  if (end - at !== text.length) return false;
  for (let i = 0; at < end; i++, at++) if (folded[at] !== text.charCodeAt(i)) return false;
  return true;
}

/** `_`, which starts port and protocol labels. */
export const UNDERSCORE = 0x5f;

function special(folded: Uint8Array, labels: Uint8Array, count: number): NameShape {
  const last = labels[count - 1]!;
  if (count === 1 && isLabel(folded, last, VERSION)) return 'dns-version';
  if (count > 2 || !isLabel(folded, last, DNS)) return 'other';
  if (count === 1) return 'dns';
  return isLabel(folded, labels[0]!, NS) ? 'name-server' : 'other';
}

function isLabel(folded: Uint8Array, at: number, label: Uint8Array): boolean {
  if (folded[at] !== label.length) return false;
  for (let i = 0; i < label.length; i++) if (folded[at + 1 + i] !== label[i]) return false;
  return true;
}

function bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

const SVC = bytes('svc');
const POD = bytes('pod');
const DNS = bytes('dns');
const NS = bytes('ns');
const VERSION = bytes('dns-version');
const ZONE = bytes('_zone');
const BARE = bytes('_');
const PIN = bytes('pin');
const PREFER = bytes('prefer');

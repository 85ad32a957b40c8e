/**
 * Chooses a Go program's resolver, and the lines that GODEBUG=netdns=1 and 2 print about it (net/conf.go). Builds
 * without cgo (CGO_ENABLED=0, most images) have no choice. With cgo, Go examines the environment, resolv.conf,
 * nsswitch.conf and the name. If any of this is unsupported, it uses libc's getaddrinfo.
 */
import type { Settings } from './client.ts';
import type { GoTraits } from './go-releases.ts';
import { isLocalhostName } from './myhostname.ts';
import { linesOf, type ResolvConf } from './resolv-conf.ts';

/** Go's sources in order; `cgo`: libc's getaddrinfo decides. */
export type GoOrder = 'cgo' | 'files,dns' | 'dns,files' | 'files' | 'dns';

/** The resolver chosen for a name, and why. */
export interface GoChoice {
  readonly order: GoOrder;
  /** One sentence. */
  readonly reason: string;
  /** The lines printed with GODEBUG=netdns=1 (or 2), in order. */
  readonly debug: readonly string[];
}

interface GoDebug {
  readonly mode: string;
  readonly level: number;
}

/** `GODEBUG=…,netdns=cgo+2,…` */
function readGoDebug(value: string | undefined): GoDebug {
  const setting = (value ?? '').split(',').findLast((part) => part.startsWith('netdns=')) ?? '';
  let mode = '';
  let level = 0;
  for (const part of setting.slice(7).split('+').slice(0, 2)) {
    if (/^\d/.test(part)) level = Number(/^\d{1,6}/.exec(part)?.[0] ?? 0);
    else if (part !== '') mode = part;
  }
  return { mode, level };
}

/** True if the program was built with cgo according to the trace's environment, which defaults to false. */
export function builtWithCgo(settings: Settings): boolean {
  return settings.env['CGO_ENABLED'] === '1';
}

export function chooseGoResolver(
  name: string,
  settings: Settings,
  conf: ResolvConf,
  traits: GoTraits,
): GoChoice {
  const { mode, level } = readGoDebug(settings.env['GODEBUG']);
  const cgo = builtWithCgo(settings);
  const preference = environmentPreference(settings);
  const [order, reason] = decide(name, settings, conf, { cgo, traits, mode, preference });
  const debug: string[] = [];
  if (level > 0) {
    const netGo = mode === 'go' || (!traits.ownOrder && !cgo);
    if (level > 1)
      debug.push(`go package net: confVal.netCgo = ${mode === 'cgo'}  netGo = ${netGo}`);
    debug.push(...announce({ cgo, traits, mode, preference }));
  }
  if (level > 1) {
    // Up to 1.20, the line shows the name at the time of the decision, after removing any trailing dot.
    const early =
      preference !== null || mode === 'cgo' || conf.unknown !== null || /[\\%]/.test(name);
    const shown = traits.wording === 1 && !early ? name.replace(/\.$/, '') : name;
    debug.push(`go package net: hostLookupOrder(${shown}) = ${order}`);
  }
  return { order, reason, debug };
}

interface Facts {
  readonly cgo: boolean;
  readonly traits: GoTraits;
  readonly mode: string;
  /** Why the environment requires libc, or null if it does not. */
  readonly preference: string | null;
}

function announce({ cgo, traits, mode, preference }: Facts): string[] {
  const say = (text: string): string => `go package net: ${text}`;
  if (traits.wording < 3) {
    if (traits.wording === 1 && !cgo)
      return [say("built with netgo build tag; using Go's DNS resolver")];
    if (mode === 'go') return [say("GODEBUG setting forcing use of Go's resolver")];
    if (!cgo) return [say("cgo resolver not supported; using Go's DNS resolver")];
    if (mode === 'cgo' || preference !== null) return [say('using cgo DNS resolver')];
    return [say('dynamic selection of DNS resolver')];
  }
  const lines: string[] = [];
  if (mode !== 'go' && mode !== 'cgo' && mode !== '') {
    lines.push(say('GODEBUG=netdns contains an invalid dns mode, ignoring it'));
  }
  if (!cgo) {
    lines.push(
      mode === 'cgo'
        ? say(
            'ignoring GODEBUG=netdns=cgo as the binary was compiled without support for the cgo resolver',
          )
        : say('using the Go DNS resolver'),
    );
  } else if (mode === 'go') lines.push(say('GODEBUG setting forcing use of the Go resolver'));
  else if (mode === 'cgo') lines.push(say('GODEBUG setting forcing use of the cgo resolver'));
  else lines.push(say('dynamic selection of DNS resolver'));
  return lines;
}

/** Environment variables that libc uses and Go does not. LOCALDOMAIN counts even if it is empty. */
function environmentPreference(settings: Settings): string | null {
  if (settings.env['LOCALDOMAIN'] !== undefined)
    return 'LOCALDOMAIN is set (an empty value counts, too)';
  for (const key of ['RES_OPTIONS', 'HOSTALIASES']) {
    if ((settings.env[key] ?? '') !== '') return `${key} is set`;
  }
  return null;
}

type Decision = readonly [GoOrder, string];

function decide(name: string, settings: Settings, conf: ResolvConf, facts: Facts): Decision {
  const { cgo, traits, mode, preference } = facts;
  const old = !traits.ownOrder;
  const forcedGo = !cgo || mode === 'go';
  const forced = cgo ? 'GODEBUG=netdns=go' : 'the program is built without cgo';
  if (!forcedGo && mode === 'cgo') return ['cgo', 'GODEBUG=netdns=cgo'];
  if (!forcedGo && preference !== null) return ['cgo', preference];
  // Other conditions are then ignored, even in programs without cgo.
  if (old && preference !== null) return ['files,dns', `${forced} (else libc: ${preference})`];
  const fallback: GoOrder = forcedGo ? 'files,dns' : 'cgo';
  const give = (why: string): Decision => [
    fallback,
    forcedGo ? `${forced} (else libc: ${why})` : why,
  ];
  if (/[\\%]/.test(name) && (old || !forcedGo)) return give('the name holds \\ or %');
  if (conf.unknown !== null && (old || !forcedGo)) {
    return give(`resolv.conf has "${conf.unknown}", which Go does not know`);
  }
  const bare = name.replace(/\.$/, '').toLowerCase();
  const local = traits.local === 'always' || (traits.local === 'cgo' && !forcedGo);
  if (local && bare.endsWith('.local'))
    return give('the name ends in .local, which may be multicast DNS');
  const sources = readSources(settings.nsswitch);
  if (sources === 'bad') return give('nsswitch.conf cannot be read');
  if (sources.length === 0)
    return [
      'files,dns',
      forcedGo ? forced : 'no hosts line in nsswitch.conf: Go resolves it itself',
    ];
  return old
    ? decideOld(bare, sources, settings, traits, give)
    : decideNew(bare, sources, settings, traits, forcedGo, give);
}

function order(seen: readonly string[]): GoOrder | null {
  const files = seen.includes('files');
  const dns = seen.includes('dns');
  if (files && dns) return seen.indexOf('files') < seen.indexOf('dns') ? 'files,dns' : 'dns,files';
  if (files) return 'files';
  return dns ? 'dns' : null;
}

const plainReason = 'nsswitch.conf has only services that Go supports';

/** Why nss-myhostname may answer for a name, or null if it does not. */
function ownName(bare: string, { host }: Settings, { ownNames }: GoTraits): string | null {
  if (isLocalhostName(bare) || ownNames.includes(bare))
    return `nsswitch has myhostname, which answers for "${bare}"`;
  if (bare !== host.hostname.toLowerCase()) return null;
  return "nsswitch has myhostname and this is the machine's own name";
}

function decideOld(
  bare: string,
  sources: readonly GoSource[],
  settings: Settings,
  traits: GoTraits,
  give: (why: string) => Decision,
): Decision {
  const seen: string[] = [];
  for (const source of sources) {
    if (source.name === 'myhostname') {
      const own = ownName(bare, settings, traits);
      if (own !== null) return give(own);
    } else if (source.name === 'files' || source.name === 'dns') {
      if (!source.standard) return give(`nsswitch has unusual [actions] after ${source.name}`);
      seen.push(source.name);
    } else if (!source.name.startsWith('mdns')) {
      return give(`nsswitch has "${source.name}", which Go does not know`);
    }
  }
  const result = order(seen);
  return result === null ? give('nsswitch has neither files nor dns') : [result, plainReason];
}

function decideNew(
  bare: string,
  sources: readonly GoSource[],
  settings: Settings,
  traits: GoTraits,
  forcedGo: boolean,
  give: (why: string) => Decision,
): Decision {
  const seen: string[] = [];
  for (const source of sources) {
    if (source.name === 'files' || source.name === 'dns') {
      if (!forcedGo && !source.standard)
        return give(`nsswitch has unusual [actions] after ${source.name}`);
      seen.push(source.name);
    } else if (forcedGo) {
      // An unknown service counts as DNS, unless `dns` itself is listed.
      if (!sources.some((other) => other.name === 'dns')) seen.push('dns');
    } else if (bare !== '' && source.name === 'myhostname') {
      const own = ownName(bare, settings, traits);
      if (own !== null) return give(own);
    } else if (bare !== '' && source.name.startsWith('mdns')) {
      if (bare.endsWith('.local'))
        return give(`nsswitch has ${source.name} and the name ends in .local`);
    } else return give(`nsswitch has "${source.name}", which Go does not know`);
  }
  const result = order(seen);
  return result === null ? give('nsswitch has neither files nor dns') : [result, plainReason];
}

interface GoSource {
  readonly name: string;
  /** True if the [actions] after the service are the same as the defaults. */
  readonly standard: boolean;
}

/** Reads nsswitch.conf like Go, where every `hosts:` line adds to the list. */
function readSources(text: string | null): readonly GoSource[] | 'bad' {
  const sources: GoSource[] = [];
  for (const line of linesOf(text)) {
    const bare = line.replace(/#.*/s, '').trim();
    if (bare === '') continue;
    const colon = bare.indexOf(':');
    if (colon < 0) return 'bad';
    let rest = bare.slice(colon + 1).trim();
    const hosts = bare.slice(0, colon).trim() === 'hosts';
    while (rest !== '') {
      // Service names end only at a space, so `files<tab>dns` is a single unknown service.
      const name = /^[^ ]+/.exec(rest)?.[0] ?? '';
      rest = rest.slice(name.length).trimStart();
      let standard = true;
      if (rest.startsWith('[')) {
        const close = rest.indexOf(']');
        if (close < 0) return 'bad';
        const read = isStandard(rest.slice(1, close));
        if (read === null) return 'bad';
        standard = read;
        rest = rest.slice(close + 1).trimStart();
      }
      if (hosts) sources.push({ name, standard });
    }
  }
  return sources;
}

function isStandard(text: string): boolean | null {
  const criteria = text.split(/\s+/).filter((word) => word !== '');
  let standard = true;
  for (const [index, word] of criteria.entries()) {
    const negated = word.startsWith('!');
    const bare = (negated ? word.slice(1) : word).toLowerCase();
    const equals = bare.indexOf('=');
    if (bare.length < 3 || equals < 0) return null;
    const status = bare.slice(0, equals);
    const action = bare.slice(equals + 1);
    const usual = status === 'success' ? 'return' : 'continue';
    const known = ['success', 'notfound', 'unavail', 'tryagain'].includes(status);
    const last = index === criteria.length - 1;
    if (negated || !known || !(action === usual || (last && action === 'return'))) standard = false;
  }
  return standard;
}

/** The upstreams in `forward` as written in a Corefile. */
import { parseAddress } from '../../server/base/ip.ts';
import type { Directive, Token } from '../../server/corefile/corefile-tree.ts';
import { expandZone, splitScheme } from '../../server/corefile/zones.ts';
import type { LintedBlock } from './subject.ts';

/** The address and port of an upstream. */
export interface WrittenUpstream {
  readonly ip: Uint8Array;
  readonly text: string;
  readonly port: number;
  readonly scheme: 'dns' | 'tls';
}

/** The words after FROM. */
export function targetsOf({ args }: Directive): readonly Token[] {
  return args.slice(1);
}

/** The words after FROM in all of a block's forwards. */
export function forwardTargets(block: LintedBlock): readonly Token[] {
  return block.directives('forward').flatMap(targetsOf);
}

/** FROM as a zone, or null if it is not one. */
export function fromOf({ args }: Directive): string | null {
  return args[0] === undefined ? null : (expandZone(args[0].text)?.[0] ?? null);
}

/** The address and port in a TO. Null for a file, a host name, or a scheme other than plain DNS and TLS. */
export function addressOf({ text: word }: Token): WrittenUpstream | null {
  const { scheme, rest } = splitScheme(word);
  if (scheme !== 'dns' && scheme !== 'tls') return null;
  const [bare = ''] = rest.split('%');
  const usual = scheme === 'tls' ? 853 : 53;
  const whole = parseAddress(bare);
  if (whole !== null) return { ip: whole, text: bare, port: usual, scheme };
  const [, inner = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(bare) ?? [];
  const ip = parseAddress(inner);
  return ip === null ? null : { ip, text: inner, port: Number(port), scheme };
}

/** True if it refers to a file in resolv.conf format. */
export function isResolvConf({ text }: Token): boolean {
  return /(^|\/)resolv\.conf$/.test(text);
}

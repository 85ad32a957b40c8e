/** The upstreams of `forward` as a Corefile states them. */
import { parseAddress } from '../../server/base/ip.ts';
import type { Directive, Token } from '../../server/corefile/corefile-tree.ts';
import { expandZone, splitScheme } from '../../server/corefile/zones.ts';

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

/** FROM as a zone; null if it is not one. */
export function fromOf({ args }: Directive): string | null {
  return args[0] === undefined ? null : (expandZone(args[0].text)?.[0] ?? null);
}

/**
 * The address and port of a TO; null for a file, a host name, or a scheme other than plain DNS and
 * TLS.
 */
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

/** True if it names a file in the format of resolv.conf. */
export function isResolvConf({ text }: Token): boolean {
  return /(^|\/)resolv\.conf$/.test(text);
}

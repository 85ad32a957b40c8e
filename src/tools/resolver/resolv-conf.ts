/**
 * The settings that resolvers read from resolv.conf. Each libc parses the file in its own way (`glibc-conf.ts`,
 * `musl-conf.ts`, …). The common result and the shared code are here.
 */

/** A line, or part of one, that this resolver ignores or reads in an unexpected way. */
export interface ConfRemark {
  /** 0: the whole file, or the environment. */
  readonly line: number;
  readonly text: string;
}

export interface ResolvConf {
  readonly servers: readonly string[];
  readonly search: readonly string[];
  readonly ndots: number;
  /** Milliseconds per attempt or, in musl, for the whole name. */
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly rotate: boolean;
  readonly singleRequest: boolean;
  readonly singleRequestReopen: boolean;
  readonly useVc: boolean;
  readonly edns0: boolean;
  readonly trustAd: boolean;
  readonly noAaaa: boolean;
  readonly strictError: boolean;
  readonly noTldQuery: boolean;
  /** The first unknown option or keyword, which makes Go leave the lookup to libc. */
  readonly unknown: string | null;
  readonly remarks: readonly ConfRemark[];
}

export type MutableConf = {
  -readonly [Key in keyof ResolvConf]: ResolvConf[Key] extends readonly (infer Item)[]
    ? Item[]
    : ResolvConf[Key];
};

export function newConf(): MutableConf {
  return {
    servers: [],
    search: [],
    ndots: 1,
    timeoutMs: 5000,
    attempts: 2,
    rotate: false,
    singleRequest: false,
    singleRequestReopen: false,
    useVc: false,
    edns0: false,
    trustAd: false,
    noAaaa: false,
    strictError: false,
    noTldQuery: false,
    unknown: null,
    remarks: [],
  };
}

/** @param line 0: the whole file, or the environment */
export function remark({ remarks }: MutableConf, line: number, text: string): void {
  remarks.push({ line, text });
}

/** Lines without their newlines. Bytes that are not UTF-8 have become U+FFFD. */
export function linesOf(text: string | null): string[] {
  if (text === null) return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

export function wordsOf(line: string): string[] {
  return line.split(/[ \t\r\n\f\v]+/).filter((word) => word !== '');
}

/** The leading digits as a signed number, as C's atoi reads them, or 0 if there are none. */
export function leadingInteger(text: string): number {
  const match = /^\s*([+-]?\d{1,9})/.exec(text);
  return match === null ? 0 : Number(match[1]);
}

/**
 * The domain part of the host name, which libc searches if the file does not specify a domain. Null for names without a
 * dot.
 */
export function domainOf(hostname: string): string | null {
  const dot = hostname.indexOf('.');
  return dot < 0 || dot === hostname.length - 1 ? null : hostname.slice(dot + 1);
}

export function withNdots(text: string | null, ndots: number): string {
  const conf = text ?? '';
  return /\bndots:\d+/.test(conf)
    ? conf.replace(/\bndots:\d+/g, `ndots:${ndots}`)
    : `${conf.replace(/\n?$/, '\n')}options ndots:${ndots}\n`;
}

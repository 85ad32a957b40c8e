/** The rules in `visibility`, and what they mean for one client. */
import { holdsAt } from '../../base/copy-bytes.ts';
import type { Refuse } from '../../corefile/properties.ts';
import type { Token } from '../../corefile/corefile-tree.ts';

/** Clients that are not pods, such as nodes, the host network and external clients. */
export const UNKNOWN = '@unknown';

/** A namespace, a prefix (`team-*`), or all (`*`). */
interface NamespacePattern {
  readonly bytes: Uint8Array;
  readonly open: boolean;
  readonly unknown: boolean;
}

/** One line. The first one that matches both the client and the namespace decides. */
export interface VisibilityRule {
  readonly allows: boolean;
  readonly from: readonly NamespacePattern[];
  readonly to: readonly NamespacePattern[];
}

/** `allow|deny from NAMESPACE… to NAMESPACE…`. */
export function readRule({ text }: Token, words: readonly Token[], refuse: Refuse): VisibilityRule {
  const to = words.findIndex((word) => word.text === 'to');
  if (words[0]?.text !== 'from' || to < 2 || to === words.length - 1) {
    return refuse(`a line must have the form '${text} from NAMESPACE… to NAMESPACE…'`, undefined, {
      hint: `Write namespaces as names, as prefixes like team-*, or as * for all; after 'from', ${UNKNOWN} means clients that are not pods.`,
    });
  }
  const patterns = (tokens: readonly Token[], client: boolean): NamespacePattern[] =>
    tokens.map((token) => readPattern(token, client, refuse));
  return {
    allows: text === 'allow',
    from: patterns(words.slice(1, to), true),
    to: patterns(words.slice(to + 1), false),
  };
}

/** Matches RFC 1123 labels, as used for namespaces, which may end in a wildcard. */
const NAMESPACE = /^(?:[a-z0-9][a-z0-9-]{0,62}\*?|\*)$/;

function readPattern({ text, place }: Token, client: boolean, refuse: Refuse): NamespacePattern {
  const unknown = client && text === UNKNOWN;
  if (!unknown && !NAMESPACE.test(text)) {
    return refuse(`not a namespace: ${JSON.stringify(text)}`, place, {
      hint: 'Namespaces are lower case, and * is allowed only at the end.',
    });
  }
  const open = text.endsWith('*');
  return { bytes: Buffer.from(unknown ? '' : open ? text.slice(0, -1) : text), open, unknown };
}

export class ClientRules {
  readonly all: boolean;
  readonly #own: Uint8Array;
  readonly #rules: readonly VisibilityRule[];

  /**
   * @param client the client's namespace, or empty if it is not a pod. Null is the most restricted client, used for
   * replies that any client may get
   */
  constructor(rules: readonly VisibilityRule[], client: string | null) {
    this.#own = Buffer.from(client ?? '');
    this.#rules = rules.filter(({ allows, from }) =>
      client === null
        ? !allows || from.some(isAnybody)
        : from.some((pattern) =>
            client === ''
              ? pattern.unknown || isAnybody(pattern)
              : !pattern.unknown && fits(pattern, this.#own, 0, this.#own.length),
          ),
    );
    this.all = this.#rules.every(({ allows }) => allows);
  }

  /**
   * True if the client is allowed to see the namespace `bytes[at, at + length)`, which is its own or one that no line
   * denies.
   */
  sees(bytes: Uint8Array, at: number, length: number): boolean {
    const own = this.#own;
    if (length > 0 && own.length === length && holdsAt(bytes, at, own)) return true;
    for (const { allows, to } of this.#rules)
      for (const pattern of to) if (fits(pattern, bytes, at, length)) return allows;
    return true;
  }
}

function isAnybody({ bytes, open }: NamespacePattern): boolean {
  return open && bytes.length === 0;
}

function fits(
  { bytes, open }: NamespacePattern,
  name: Uint8Array,
  at: number,
  length: number,
): boolean {
  const mayFit = open ? length >= bytes.length : length === bytes.length;
  return mayFit && holdsAt(name, at, bytes);
}

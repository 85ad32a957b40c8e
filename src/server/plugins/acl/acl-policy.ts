/** The rules of an `acl` list. */
import { parseNet, type Net } from '../../base/ip.ts';
import type { Refuse } from '../../corefile/properties.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { typeNumber } from '../../wire/iana.ts';

export const actions = ['allow', 'block', 'filter', 'drop'] as const;
export type AclAction = (typeof actions)[number];

/** One line of an `acl`. */
export interface AclPolicy {
  readonly action: AclAction;
  /** Null matches all types. */
  readonly types: ReadonlySet<number> | null;
  /** Null matches all addresses. */
  readonly nets: readonly Net[] | null;
}

/** Reads `ACTION [type TYPE…] [net NET…]`, where `*` matches everything. */
export function readPolicy(
  { text, place }: Token,
  words: readonly Token[],
  refuse: Refuse,
): AclPolicy {
  const action = actions.find((name) => name === text.toLowerCase());
  if (action === undefined) {
    return refuse(
      `unexpected token ${JSON.stringify(text)}; expect 'allow', 'block', 'filter' or 'drop'`,
      place,
    );
  }
  const typeWords: Token[] = [];
  const netWords: Token[] = [];
  let section: Token[] | null = null;
  let begun: Token | null = null;
  const close = (): void => {
    if (begun !== null && section!.at(-1) === begun) {
      refuse(
        `no token specified in ${JSON.stringify(begun.text.toLowerCase())} section`,
        begun.place,
      );
    }
  };
  for (const word of words) {
    const name = word.text.toLowerCase();
    if (name === 'type' || name === 'net') {
      close();
      section = name === 'type' ? typeWords : netWords;
      section.push(word);
      begun = word;
    } else if (section === null) {
      return refuse(
        `unexpected token ${JSON.stringify(word.text)}; expect 'type | net'`,
        word.place,
      );
    } else section.push(word);
  }
  close();
  return { action, types: readTypes(typeWords, refuse), nets: readNets(netWords, refuse) };
}

/** @param words the policy's sections, each starting with its name */
function readTypes(words: readonly Token[], refuse: Refuse): ReadonlySet<number> | null {
  const types = new Set<number>();
  for (const { text, place } of words) {
    if (text === '*') return null;
    if (text.toLowerCase() === 'type') continue;
    const type = typeNumber(text);
    if (type === null)
      return refuse(`unexpected token ${JSON.stringify(text)}; expect legal QTYPE`, place);
    types.add(type);
  }
  return words.length === 0 ? null : types;
}

function readNets(words: readonly Token[], refuse: Refuse): readonly Net[] | null {
  const nets: Net[] = [];
  for (const { text, place } of words) {
    if (text === '*') return null;
    if (text.toLowerCase() === 'net') continue;
    const net = parseNet(text);
    if (net === null) {
      return refuse(`illegal CIDR notation ${JSON.stringify(text)}`, place, {
        hint: 'Write networks as 10.0.0.0/8 or 2001:db8::/32.',
      });
    }
    nets.push(net);
  }
  return words.length === 0 ? null : nets;
}

/** Random zones. */
import type { Random } from '../../src/server/base/random.ts';

/** A zone as text, and questions about it. */
export interface RandomZone {
  readonly text: string;
  readonly questions: readonly string[];
}

const labels = ['a', 'b', 'c', 'www', 'x', 'mail', '_tcp', 'deep', 'NS', 'zz'];
const types = [
  'A',
  'AAAA',
  'MX',
  'TXT',
  'NS',
  'SOA',
  'CNAME',
  'DS',
  'SRV',
  'PTR',
  'DNAME',
  'HTTPS',
];

/**
 * Generates a small zone with all the difficult parts: wildcards, empty non-terminals, zone cuts with and without glue
 * and DS, names below cuts, alias chains, alias loops, aliases to other zones, and DNAMEs. Most names have several
 * roles.
 */
export function randomZone(random: Random, origin: string, questions: number): RandomZone {
  const pick = <T>(list: readonly T[]): T => list[random.integer(list.length)]!;
  const name = (deep = 4): string => {
    const parts: string[] = [];
    for (let left = 1 + random.integer(deep); left > 0; left--) parts.push(pick(labels));
    if (random.integer(8) === 0) parts[0] = '*';
    return parts.join('.');
  };
  const plain = (): string => name().replace('*', 'star');
  const target = (): string =>
    random.integer(5) === 0 ? `${plain()}.elsewhere.` : `${plain()}.${origin}`;
  const owners = new Map<string, 'data' | 'alias' | 'cut' | 'dname'>();
  const lines = [
    `$TTL 300`,
    `@ 3600 IN SOA ns.${origin} host.${origin} 7 7200 3600 1209600 60`,
    `@ NS ns.${origin}`,
    `@ NS ns.elsewhere.`,
    `@ MX 10 mail.${origin}`,
    `ns A 192.0.2.1`,
  ];
  owners.set('ns', 'data');
  for (let left = 10 + random.integer(30); left > 0; left--) {
    const owner = name();
    const kind = owners.get(owner.toLowerCase());
    const below = [...owners].some(
      ([other, what]) => what === 'dname' && owner.toLowerCase().endsWith(`.${other}`),
    );
    if (below) continue;
    const wild = owner.startsWith('*');
    const draw = random.integer(20);
    if (draw < 3 && kind === undefined) {
      owners.set(owner.toLowerCase(), 'alias');
      lines.push(`${owner} CNAME ${target()}`);
    } else if (draw < 6 && !wild && (kind === undefined || kind === 'cut')) {
      owners.set(owner.toLowerCase(), 'cut');
      lines.push(`${owner} NS ${random.integer(2) === 0 ? `ns.${owner}.${origin}` : target()}`);
      const glue = `ns.${owner}`.toLowerCase();
      const isFree = (owners.get(glue) ?? 'data') === 'data';
      // Knot and NSD reject an entire zone if a name has both an alias and other data.
      if (random.integer(2) === 0 && isFree) {
        owners.set(glue, 'data');
        lines.push(`ns.${owner} A 192.0.2.9`);
      }
      if (random.integer(2) === 0) lines.push(`${owner} DS 12345 13 2 ${'ab'.repeat(32)}`);
    } else if (draw === 6 && !wild && kind === undefined) {
      const under = [...owners.keys()].some((other) => other.endsWith(`.${owner.toLowerCase()}`));
      if (under) continue;
      owners.set(owner.toLowerCase(), 'dname');
      lines.push(`${owner} DNAME ${target()}`);
    } else if (kind === undefined || kind === 'data') {
      owners.set(owner.toLowerCase(), 'data');
      lines.push(
        pick([
          `${owner} A 192.0.2.${random.integer(250)}`,
          `${owner} AAAA 2001:db8::${random.integer(250)}`,
          `${owner} MX 5 ${target()}`,
          `${owner} SRV 1 2 53 ${target()}`,
          `${owner} TXT "text ${random.integer(9)}"`,
        ]),
      );
    }
  }
  const known = [...owners.keys()];
  const asked = Array.from({ length: questions }, () => {
    const draw = random.integer(10);
    let wanted = draw < 3 ? pick(known) : draw < 6 ? `${pick(labels)}.${pick(known)}` : plain();
    if (draw === 9) wanted = pick(known).replace(/^[^.]*\./, '');
    if (draw === 8) wanted = `${pick(labels)}.${pick(labels)}.${pick(known)}`;
    if (random.integer(30) === 0) wanted = '';
    const type = random.integer(3) === 0 ? 'A' : pick(types);
    return `${wanted === '' ? '' : `${wanted}.`}${origin} ${type}`;
  });
  return { text: `${lines.join('\n')}\n`, questions: asked };
}

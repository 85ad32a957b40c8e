/**
 * Generates Corefiles with a few errors at most. They are examples of every CoreDNS property, with random changes to
 * words and lines.
 */
import type { Random } from '../../../src/server/base/random.ts';
import { directives, type Property } from '../../../tools/coredns/properties.ts';
import { drawFrom, type Draw } from './words.ts';

export interface ChangedCorefile {
  readonly text: string;
  readonly directives: readonly string[];
}

/** The addresses and files that the examples use. */
export interface Scene {
  readonly port: number;
  readonly http: number;
  readonly directory: string;
}

/** Values that might be accepted for any kind of argument. */
const words: readonly string[] = [
  ...[
    '""',
    '0',
    '1',
    '2',
    '-1',
    '7',
    '100',
    '65535',
    '65536',
    '4294967296',
    '99999999999999999999',
  ],
  ...['1.5', '0x10', '1e3', '+5', '007', '10%', '100%', '101%', '-1%', '%', '1_000'],
  ...['10s', '1m30s', '0s', '-5s', '5x', '1h', '1.5h', '500ms', '1d', '10S', '3600h', '1us', 's'],
  ...[
    '10.0.0.0/8',
    '10.0.0.0/33',
    '10.0.0.1',
    '10.0.0.1/',
    '300.1.1.1',
    '010.0.0.1',
    '::1',
    '[::1]',
  ],
  ...[
    '2001:db8::/32',
    '2001:db8::/129',
    '::ffff:10.0.0.1',
    'fe80::1%lo',
    '0.0.0.0/0',
    '10.0.0.0/0',
  ],
  ...[
    'example.org',
    'example.org.',
    'EXAMPLE.org',
    '.',
    '*',
    'a..b',
    '.org',
    '*.example.org',
    '-a.org',
  ],
  ...[`${'l'.repeat(64)}.org`, 'b\\.c.org', 'ü.org', '_a.org', 'in-addr.arpa', '10.in-addr.arpa'],
  ...[
    '127.0.0.1:53',
    '127.0.0.1:99999',
    '127.0.0.1:',
    ':6081',
    '127.0.0.1:dns',
    '[::1]:53',
    '::1:53',
  ],
  ...[
    'on',
    'off',
    'true',
    'false',
    'ON',
    'yes',
    'full',
    'exact',
    'regex',
    'set',
    'stop',
    'continue',
  ],
  ...['A', 'aaaa', 'ANY', 'TYPE65280', 'TYPE99999', 'BOGUS', 'AXFR', 'IN', 'CH', 'CLASS7', '255'],
  ...['NXDOMAIN', 'servfail', 'BADVERS', 'NOPE', '3', '16', '23', '4096', 'QUERY', 'NOTIFY'],
  ...['http://127.0.0.1:1', 'https://127.0.0.1:1', 'tls://192.0.2.1', 'dns://192.0.2.1', 'ftp://a'],
  ...[
    '192.0.2.1',
    '192.0.2.1:5353',
    'tls://192.0.2.1:853',
    'dns.example',
    '/nowhere/file',
    '@/hosts',
  ],
  ...[
    '@/db.example.org',
    '@/cert.pem',
    '@/',
    '[a',
    '(',
    'a{2',
    '{1}',
    '{{',
    '{{ .Name }}',
    '#x',
    '\\',
  ],
  ...[
    'a b',
    '"a b"',
    '"',
    '`',
    "'",
    '{$NOPE}',
    '{%NOPE%}',
    '^a\\.',
    '.*',
    '(?P<a>x)',
    '(?=a)',
    ';',
  ],
];

const keys: readonly string[] = [
  ...[
    '.:PORT',
    'example.org:PORT',
    'dns://example.org:PORT',
    'example.org. .:PORT',
    'PORT',
    ':PORT',
  ],
  ...['.:PORT, example.org:PORT', '10.0.0.0/24:PORT', '10.0.0.0/22:PORT', '10.0.0.1/24:PORT'],
  ...[
    '10.0.0.0/33:PORT',
    '2001:db8::/32:PORT',
    '2001:db8::1/33:PORT',
    '10.0.0.0/0:PORT',
    '*.org:PORT',
  ],
  ...[
    'a..b:PORT',
    'example.org:0',
    'example.org:65536',
    'example.org:-1',
    'example.org:x',
    'ftp://.:PORT',
  ],
  ...[
    'example.org:PORT example.org:PORT',
    'example.org:PORT EXAMPLE.ORG.:PORT',
    'DNS://.:PORT',
    '""',
  ],
  ...['ü.org:PORT', `${'l'.repeat(64)}.org:PORT`, '[::1]:PORT', '::1:PORT', '.:PORT,', '//.:PORT'],
  ...[
    'grpc://.:PORT',
    'tls://.:PORT',
    'https://.:PORT',
    'quic://.:PORT',
    'https3://.:PORT',
    'http://.',
  ],
];

/** Examples that need internet access at startup, and those that are meant to be refused. */
const left = new Set(['azure', 'clouddns', 'route53', 'nomad', 'quic', 'https3']);

/** All examples that CoreDNS can start here. */
export const startedHere: readonly { readonly name: string; readonly property: Property }[] =
  directives.flatMap(({ name, properties }) =>
    left.has(name)
      ? []
      : properties
          .filter(({ elsewhere, missing }) => elsewhere !== true && missing !== true)
          .map((property) => ({ name, property })),
  );

export type Line = string[];

/** One or two examples with up to three changes. */
export function changedCorefile(random: Random, scene: Scene): ChangedCorefile {
  const draw = drawFrom(random);
  const first = draw.one(startedHere);
  const taken = [first];
  const near = startedHere.filter(({ name }) => name === first.name);
  const lines = linesOf(first.property);
  // Adds another property of the same directive, or a separate directive.
  if (draw.rarely(3)) addProperty(lines, linesOf(draw.one(near).property), draw);
  if (draw.rarely(6)) {
    const other = draw.one(draw.rarely(2) ? near : startedHere);
    taken.push(other);
    lines.push(...linesOf(other.property));
  }
  const vocabulary = [
    ...new Set(
      near.flatMap(({ property }) =>
        linesOf(property)
          .flat()
          .filter((word) => !/^[{}]$/.test(word)),
      ),
    ),
  ];
  for (let left = draw.between(0, 3); left > 0; left--) change(lines, vocabulary, draw);
  let key = taken.find(({ property }) => property.key !== undefined)?.property.key;
  if (draw.rarely(12)) key = draw.one(keys);
  const block = corefileOf(key, lines, scene);
  return {
    text: draw.rarely(40) ? `${block}${block}` : block,
    directives: taken.map(({ name }) => name),
  };
}

/** Builds a server block from these lines, using the scene's files and ports. */
export function corefileOf(
  key: string | undefined,
  lines: readonly Line[],
  { directory, port, http }: Scene,
): string {
  const bound = lines.some(([word]) => word === 'bind') ? lines : [['bind', '127.0.0.1'], ...lines];
  const inside = bound.map((line) => `  ${line.join(' ')}\n`).join('');
  return `${key ?? 'example.org:PORT'} {\n${inside}}\n`
    .replaceAll('PORT', String(port))
    .replaceAll('HTTP', String(http))
    .replaceAll('@/', `${directory}/`)
    .replaceAll(/ @$/gm, ` ${directory}`);
}

export function linesOf({ example }: Property): Line[] {
  return example.split('\n').map((line) => line.match(/"[^"]*"|\S+/g) ?? []);
}

/** Copies the lines between one directive's braces into another directive. */
function addProperty(lines: Line[], from: readonly Line[], draw: Draw): void {
  const start = from.findIndex((line) => line.at(-1) === '{');
  const end = from.findIndex(([word]) => word === '}');
  if (start < 0 || end < 0) return;
  const inside = from.slice(start + 1, end);
  const at = lines.findIndex((line) => line.at(-1) === '{');
  if (at >= 0) lines.splice(at + draw.between(1, 2), 0, ...inside.map((line) => [...line]));
  else if (lines[0] !== undefined) lines.splice(0, 1, [...lines[0], '{'], ...inside, ['}']);
}

function change(lines: Line[], vocabulary: readonly string[], draw: Draw): void {
  const line = draw.one(lines);
  if (line === undefined) return;
  const at = draw.between(0, line.length);
  const word = (): string => draw.one(draw.rarely(3) ? vocabulary : words);
  const changes: readonly (() => void)[] = [
    () => line.splice(at, 1),
    () => line.splice(at, 1, word()),
    () => line.splice(at, 1, word()),
    () => line.splice(Math.max(1, at), 1, word()),
    () => line.splice(Math.max(1, at), 0, word()),
    () => line.splice(Math.max(1, at), 0, word()),
    () => line.splice(at, 0, word()),
    () => lines.splice(lines.indexOf(line), 0, [...line]),
    () => lines.splice(lines.indexOf(line), 1),
    () => lines.splice(lines.indexOf(line) + 1, 0, [draw.one(vocabulary)]),
    () => lines.splice(lines.indexOf(line) + 1, 0, [draw.one(vocabulary), word()]),
    () => line.splice(at, 1, (line[at] ?? 'x').toUpperCase()),
    () => line.splice(at, 1, `${line[at] ?? ''}x`),
    () => line.splice(at, 1, (line[at] ?? '').slice(1)),
    () => line.splice(0, line.length, ...line.toReversed()),
    () => line.splice(at, 0, '{'),
    () => line.splice(at, 0, '}'),
  ];
  draw.one(changes)();
}

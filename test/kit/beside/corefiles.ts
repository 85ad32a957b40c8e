/** Generates random server blocks with sources of answers and other plugins in front of them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom, type Random } from '../../../src/server/base/random.ts';
import { makeMmdb } from '../mmdb.ts';
import { drawFrom, drawName, labels, zones, type Draw } from './words.ts';

export interface RandomBlock {
  readonly text: string;
  readonly port: number;
  readonly plugins: ReadonlySet<string>;
}

/** The absolute names in the block's text, which are worth querying. */
export function namesIn({ text }: RandomBlock): readonly string[] {
  const found = text.match(/[a-z0-9*_.-]+\.(?:org|net|test)\b\.?/gi) ?? [];
  return found.map((name) => `${name.replaceAll(/^\.|\.$/g, '').toLowerCase()}.`);
}

/** The parts that all blocks of a Corefile share. */
export interface Surroundings {
  readonly directory: string;
  readonly upstreams: readonly string[];
  /** The `IP:PORT` of a server that transfers the common zones, or null if there is none. */
  readonly primary: string | null;
}

type Part = (
  draw: Draw,
  about: Surroundings & { readonly zone: string; readonly port: number },
) => string;

const types = [
  'A',
  'AAAA',
  'TXT',
  'MX',
  'SRV',
  'PTR',
  'ANY',
  'HTTPS',
  'CNAME',
  'NS',
  'SOA',
  'HINFO',
];
const nets = [
  '127.0.0.1',
  '127.0.0.0/8',
  '127.0.0.2/32',
  '127.0.0.0/30',
  '10.0.0.0/8',
  '::1/128',
  '0.0.0.0/0',
  '*',
  '127.0.0.3 127.0.0.2',
];

function braces(word: string, lines: readonly string[]): string {
  return lines.length === 0
    ? word
    : `${word} {\n${lines.map((line) => `    ${line}\n`).join('')}  }`;
}

/** Picks several random lines. */
function maybe(draw: Draw, lines: readonly string[], times = 2): string[] {
  return lines.filter(() => draw.rarely(times));
}

function within(draw: Draw): string {
  return draw.rarely(3) ? ` ${draw.one(zones).replace(/\.$/, '')}` : '';
}

function fallthrough(draw: Draw): string[] {
  return draw.rarely(3) ? [] : [`fallthrough${within(draw)}`];
}

const addresses = ['192.0.2.10', '192.0.2.11', '10.0.0.5', '2001:db8::10', '2001:db8::11'];

/** A zone for the server that transfers it; its content never changes. */
export function primaryZone(origin: string): string {
  return plainZone(drawFrom(seededRandom(origin.length)), origin);
}

/** A zone without the content on which the servers disagree, because other tests compare that. */
function plainZone(draw: Draw, origin: string): string {
  const lines = [
    `$TTL 300`,
    `@ 40 SOA ns.${origin} host.${origin} 7 7200 3600 1209600 60`,
    `@ NS ns.${origin}`,
    `ns A 192.0.2.1`,
  ];
  for (const label of draw.some(labels, 12)) {
    lines.push(
      draw.one([
        `${label} A 192.0.2.9\n${label} A 192.0.2.8`,
        `${label} AAAA 2001:db8::9`,
        `${label} MX 10 ns.${origin}`,
        `${label} TXT "some text" more`,
        `${label} SRV 1 2 53 ns.${origin}`,
        `${label} CNAME ns.${origin}`,
        `${label} CNAME ${draw.one(labels)}.example.net.`,
        `${label} HTTPS 1 . alpn=h2`,
      ]),
    );
  }
  return `${lines.join('\n')}\n`;
}

/** Sources of answers. `forward` comes last, because queries never get past it. */
const sources: Readonly<Record<string, Part>> = {
  hosts: (draw) => {
    const inline = Array.from({ length: draw.between(1, 5) }, () => {
      const names = Array.from({ length: draw.between(1, 2) }, () =>
        drawName(draw).replace(/\.$/, ''),
      );
      if (draw.rarely(6)) names[0] = `*.${draw.one(zones).replace(/\.$/, '')}`;
      return `${draw.one(addresses)} ${names.join(' ')}`;
    });
    const through = fallthrough(draw);
    const more = [
      ...maybe(draw, [`ttl ${draw.between(1, 9999)}`, 'no_reverse', 'reload 0'], 4),
      ...through,
      ...(through.length > 0 && draw.rarely(3) ? ['fallthrough_unsupported'] : []),
    ];
    return braces(`hosts${draw.rarely(4) ? ` /dev/null${within(draw)}` : ''}`, [
      ...inline,
      ...more,
    ]);
  },
  file: (draw, { directory, zone, port }) => {
    const origin = zone === '.' ? draw.one(zones) : zone;
    const file = join(directory, `db.${port}.${draw.between(1, 1e6)}`);
    writeFileSync(file, plainZone(draw, origin));
    return braces(`file ${file} ${origin}`, [...maybe(draw, ['reload 0']), ...fallthrough(draw)]);
  },
  secondary: (draw, { zone, primary }) =>
    braces(`secondary ${zone === '.' ? draw.one(zones) : zone}`, [
      `transfer from ${primary}`,
      ...fallthrough(draw),
    ]),
  template: (draw) => {
    const lines: string[] = [];
    const matched = draw.one([
      ['^(?P<a>[a-z]+)[.](?P<b>.*)$', '{{ .Group.b }}'],
      ['(^|[.])(?P<b>example[.](org|net)[.])$', '{{ .Group.b }}'],
      ['^(?P<b>[abc][.])', 'x.{{ .Group.b }}test.'],
      ['[.]test[.]$ ^www', 'a.test.'],
    ] as const);
    if (!draw.rarely(3)) lines.push(`match ${matched[0]}`);
    const type = draw.one([...types.slice(0, 8), 'ANY', 'ANY']);
    const record = (): string =>
      draw.one([
        '{{ .Name }} 60 IN A 192.0.2.77',
        '{{ .Name }} 60 IN {{ .Type }} 192.0.2.77',
        '{{ .Name }} 60 {{ .Class }} AAAA 2001:db8::77',
        '{{ .Name }} 30 IN TXT \\"{{ .Type }} {{ .Class }} {{ .Zone }} {{ .Remote }}\\"',
        '{{ .Name }} 30 IN TXT \\"{{ len .Match }} {{ index .Match 0 }}\\"',
        '{{ .Name }} 45 IN CNAME a.example.org.',
        '{{ .Zone }} 45 IN SOA ns.{{ .Zone }} host.{{ .Zone }} 1 60 60 60 60',
        '{{ .Name }} 5 IN MX 10 {{ .Question.Name }}',
        `{{ .Name }} 5 IN TXT ${places.map((label) => `\\"{{ .Meta \\"geoip/${label}\\" }}\\"`).join(' ')}`,
      ]);
    if (!draw.rarely(5)) lines.push(`answer "${record()}"`);
    if (draw.rarely(4)) lines.push(`answer "${record()}"`);
    if (draw.rarely(4)) lines.push(`additional "${record()}"`);
    if (draw.rarely(4)) lines.push(`authority "${record()}"`);
    if (draw.rarely(3))
      lines.push(`rcode ${draw.one(['NXDOMAIN', 'SERVFAIL', 'NOERROR', 'NXDOMAIN'])}`);
    if (draw.rarely(5)) lines.push(`ederror ${draw.one(['17', '15 "for a reason"', '0'])}`);
    if (!draw.rarely(3)) lines.push(`fallthrough${within(draw)}`);
    return braces(
      `template ${draw.one(['IN', 'IN', 'IN', 'ANY', 'CH'])} ${type}${within(draw)}`,
      lines,
    );
  },
  whoami: () => 'whoami',
  erratic: (draw) =>
    braces('erratic', ['drop 0', ...maybe(draw, ['truncate 2', 'delay 2 5ms', 'large'])]),
  forward: (draw, { upstreams, zone }) => {
    const from = draw.rarely(4) && zone === '.' ? draw.one(zones) : '.';
    const count = draw.rarely(3) ? 2 : 1;
    const to = upstreams.slice(0, count).join(' ');
    return braces(
      `forward ${from} ${to}`,
      [
        ...maybe(
          draw,
          [
            'prefer_udp',
            'force_tcp',
            `except ${drawName(draw).replace(/\.$/, '')}`,
            'expire 5s',
            'policy sequential',
            'max_fails 0',
            'max_concurrent 500',
            'max_idle_conns 3',
            'health_check 1s no_rec',
            'next NXDOMAIN',
            'failover SERVFAIL REFUSED',
            'next_on_nodata',
            'failfast_all_unhealthy_upstreams',
          ],
          7,
        ),
      ].filter((line, _, all) => line !== 'prefer_udp' || !all.includes('force_tcp')),
    );
  },
};

const matchedNames = (draw: Draw): string =>
  draw.one([
    () => `exact ${drawName(draw, 1)} ${drawName(draw, 1)}`,
    () => `${drawName(draw, 1)} ${drawName(draw, 1)}`,
    () => `prefix ${draw.one(labels)}. ${draw.one(labels)}.`,
    () => `prefix ${draw.one(labels)} ${draw.one(labels)}`,
    () => `suffix ${draw.one(zones)} ${draw.one(zones)}`,
    () => `suffix .${draw.one(zones)} .${draw.one(zones)}`,
    () =>
      `substring ${draw.one(['example', 'a', 'org', 'www.e'])} ${draw.one(['test', 'b', 'net', 'mail.e'])}`,
    () => `regex ^${draw.one(labels)}\\.(.*)$ ${draw.one(labels)}.{1}`,
    () => `regex (.*)\\.${draw.one(zones).replaceAll('.', '\\.')}$ {1}.${draw.one(zones)}`,
    () => `regex ([a-z]+)\\.(example)\\.(org|net)\\. {2}.{1}.example.{3}`,
  ])();

/** Metadata that geoip sets. */
const places = [
  'city/name',
  'country/code',
  'country/is_in_european_union',
  'subdivisions/code',
  'latitude',
];

const rewriteRule = (draw: Draw): string =>
  draw.one([
    () => {
      const rule = `name ${matchedNames(draw)}`;
      const [, kind] = rule.split(' ');
      const has = ['exact', 'prefix', 'suffix', 'substring', 'regex'].includes(kind!);
      const answers = [
        'answer auto',
        `answer name (.*)\\.${draw.one(zones).replaceAll('.', '\\.')} {1}.${draw.one(zones)}`,
        `answer value (.*)\\.${draw.one(zones).replaceAll('.', '\\.')} {1}.${draw.one(zones)}`,
        `answer name auto`,
        `answer auto value (.*)\\.test\\. {1}.example.org.`,
      ];
      return has && draw.rarely(2) ? `${rule} ${draw.one(answers)}` : rule;
    },
    () => `name ${matchedNames(draw)}`,
    () => `name ${matchedNames(draw)}`,
    () => `type ${draw.one(types)} ${draw.one(types)}`,
    () => `class ${draw.one(['CH', 'IN', 'HS'])} ${draw.one(['CH', 'IN'])}`,
    () =>
      `ttl ${matchedNames(draw).replace(/ \S+$/, '')} ${draw.one(['15', '30-300', '-30', '100-', '0'])}`,
    () =>
      `rcode ${matchedNames(draw).replace(/ \S+$/, '')} ${draw.one(['SERVFAIL', 'NXDOMAIN', '0', 'REFUSED'])} ${draw.one(['NOERROR', 'NXDOMAIN', '5'])}`,
    () => `cname ${matchedNames(draw)}`,
    () =>
      `edns0 local ${draw.one(['set', 'append', 'replace'])} 0xffee ${draw.one(['0x61626364', 'abcd', '{qname}', '{qtype}', '{client_ip}', '{protocol}', '{server_port}', '{geoip/country/code}', '{view/name}'])}${draw.rarely(3) ? ' revert' : ''}`,
    () => `edns0 local unset 0xffee`,
    () => `edns0 nsid ${draw.one(['set', 'append', 'replace', 'unset'])}`,
    () => `edns0 subnet ${draw.one(['set 24 56', 'append 16 48', 'replace 32 128', 'unset'])}`,
  ])();

/** The plugins before the sources. */
const modifiers: Readonly<Record<string, Part>> = {
  acl: (draw) =>
    braces(
      `acl${within(draw)}`,
      Array.from({ length: draw.between(1, 3) }, () => {
        const type = draw.rarely(2) ? '' : ` type ${draw.one([...types, '*', 'A AAAA'])}`;
        const net = draw.rarely(3) ? '' : ` net ${draw.one(nets)}`;
        return `${draw.one(['allow', 'block', 'filter', 'filter', 'block', 'drop'])}${type}${net}`;
      }),
    ),
  any: () => 'any',
  bufsize: (draw) => `bufsize ${draw.one(['512', '1232', '4096', '700', ''])}`.trim(),
  cache: (draw) =>
    braces(
      `cache${draw.rarely(2) ? ` ${draw.one(['30', '5', '3600', '1'])}` : ''}${draw.rarely(6) ? within(draw) : ''}`,
      maybe(
        draw,
        [
          `success 8192${draw.one(['', ' 20', ' 100 10'])}`,
          `denial 8192${draw.one(['', ' 20', ' 100 10'])}`,
          'prefetch 2 1m 20%',
          draw.one([
            'serve_stale',
            'serve_stale 1h immediate',
            'serve_stale 1h verify',
            'serve_stale 10m verify 100ms 30s',
          ]),
          draw.one(['servfail 0', 'servfail 10s']),
          `disable ${draw.one(['success', 'denial'])}${within(draw)}`,
          'keepttl',
        ],
        4,
      ),
    ),
  chaos: (draw) =>
    `chaos ${draw.one(['', 'v1', 'v1 "One Two" three@x'])}`
      .trim()
      .replace(/^chaos$/, 'chaos v0 nobody'),
  dns64: (draw) =>
    draw.one([
      'dns64 {\n    allow_ipv4\n  }',
      'dns64 64:1337::/96 {\n    allow_ipv4\n    translate_all\n  }',
      'dns64',
      'dns64 {\n    prefix 2001:db8:64::/96\n    allow_ipv4\n  }',
    ]),
  errors: () => 'errors',
  header: (draw) =>
    braces(
      'header',
      Array.from(
        { length: draw.between(1, 3) },
        () =>
          `${draw.one(['query', 'response', 'response'])} ${draw.one(['set', 'clear'])} ${draw.some(['aa', 'ra', 'rd'], 2).join(' ')}`,
      ),
    ),
  loadbalance: (draw) =>
    draw.one([
      'loadbalance',
      'loadbalance round_robin',
      'loadbalance round_robin {\n    prefer 192.0.2.0/24\n  }',
    ]),
  local: (draw) => draw.one(['local', 'local {\n    localhost_prefix off\n  }']),
  metadata: () => 'metadata',
  minimal: () => 'minimal',
  nsid: (draw) => `nsid ${draw.one(['one', '"two words"', ''])}`.trim().replace(/^nsid$/, 'nsid z'),
  rewrite: (draw) =>
    Array.from({ length: draw.between(1, 3) }, () => {
      const how = draw.one(['', '', 'stop ', 'continue ']);
      return `rewrite ${how}${rewriteRule(draw)}`;
    }).join('\n  '),
  autopath: (draw, { directory, port, zone }) => {
    const file = join(directory, `resolv.${port}.${draw.between(1, 1e6)}`);
    const search = draw.some(zones, 3).map((one) => one.replace(/\.$/, ''));
    writeFileSync(file, `nameserver 192.0.2.1\nsearch ${search.join(' ')}\noptions ndots:5\n`);
    return `autopath${zone === '.' && draw.rarely(2) ? ` ${search[0]}` : ''} ${file}`;
  },
  tsig: () => 'tsig {\n    secret k.test. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\n  }',
  cancel: () => 'cancel 4s',
  transfer: (draw, { zone }) =>
    braces(`transfer${draw.rarely(2) ? ` ${zone === '.' ? draw.one(zones) : zone}` : ''}`, [
      `to ${draw.one(['*', '*', '* 127.0.0.1', '127.0.0.1', '127.0.0.7:5399'])}`,
    ]),
  geoip: (draw, { directory }) => {
    const file = join(directory, 'places.mmdb');
    writeFileSync(file, makeMmdb('GeoLite2-City', geography));
    return braces(`geoip ${file}`, maybe(draw, ['edns-subnet']));
  },
};

/** The locations of the clients in the comparison, and of the prefixes in their EDNS Client Subnet options. */
const geography = {
  '127.0.0.0/8': {
    city: { names: { en: 'Berlin' } },
    country: { iso_code: 'DE', is_in_european_union: true, names: { en: 'Germany' } },
    location: { latitude: 52.5244, longitude: 13.4105 },
    subdivisions: [{ iso_code: 'BE' }],
  },
  '127.0.0.2/32': { country: { iso_code: 'GB' }, location: { latitude: 51.5 } },
  '192.0.2.0/24': {
    country: { iso_code: 'US' },
    subdivisions: [{ iso_code: 'CA' }, { iso_code: 'XX' }],
  },
  '2001:db8::/32': { city: { names: { en: 'Oslo', de: 'Olso' } }, country: { iso_code: 'NO' } },
};

const expressions: readonly string[] = [
  "incidr(client_ip(), '127.0.0.2/31')",
  "client_ip() startsWith '127.0.0' and proto() == 'udp'",
  "type() in ['A', 'TXT', 'TYPE65280']",
  "name() endsWith 'org.'",
  "name() matches '^[a-m]'",
  'do()',
  'bufsize() > 1000',
  'size() < 45',
  "class() == 'IN' and opcode() == 0",
  "server_port() == '6003' or len(name()) % 2 == 0",
  "not do() && type() != 'AAAA'",
  'id() > 30000',
  "metadata('geoip/country/code') == 'DE'",
];

/**
 * Generates either one block with some sources and modifiers for 127.0.0.1:`port`, or two blocks, the first of which
 * has a view.
 */
function randomBlock(random: Random, port: number, about: Surroundings): RandomBlock {
  const draw = drawFrom(random);
  const zone = draw.rarely(3) ? draw.one(zones) : '.';
  const second =
    zone !== '.' && draw.rarely(3)
      ? ` ${draw.one(zones.filter((one) => one !== zone))}:${port}`
      : '';
  const scene = { ...about, zone, port };
  const plugins = new Set<string>();
  const key = `${zone}:${port}${second}`;
  const bodies = [directivesOf(draw, scene, plugins)];
  if (draw.rarely(5)) {
    plugins.add('view');
    const expression = draw.some(expressions, 2).map((one) => `expr ${one}`);
    bodies.unshift([braces(`view v${port}`, expression), ...directivesOf(draw, scene, plugins)]);
  }
  const texts = bodies.map((lines, index) => {
    const { before, within: inside } = draw.rarely(5)
      ? imported(draw, lines, `${port}x${index}`, about.directory)
      : { before: '', within: lines };
    return `${before}${key} {\n${['bind 127.0.0.1', ...inside].map((line) => `  ${line}\n`).join('')}}\n`;
  });
  return { text: texts.join(''), port, plugins };
}

/**
 * Generates several blocks on consecutive ports from 6000 on.
 * @param fits returns true for generated blocks that can be used
 */
export function randomBlocks(
  random: Random,
  count: number,
  about: Surroundings,
  fits: (block: RandomBlock) => boolean = () => true,
): readonly RandomBlock[] {
  const blocks: RandomBlock[] = [];
  while (blocks.length < count) {
    const block = randomBlock(random, 6000 + blocks.length, about);
    if (fits(block)) blocks.push(block);
  }
  return blocks;
}

export const textOf = (blocks: readonly RandomBlock[]): string =>
  blocks.map((block) => block.text).join('\n');

/** Moves some lines into a snippet or a file. */
function imported(
  draw: Draw,
  lines: readonly string[],
  name: string,
  directory: string,
): { readonly before: string; readonly within: readonly string[] } {
  const moved = draw.some(lines, 3);
  const text = moved.map((line) => `  ${line}\n`).join('');
  const left = lines.filter((line) => !moved.includes(line));
  if (draw.rarely(2))
    return { before: `(s${name}) {\n${text}}\n`, within: [...left, `import s${name}`] };
  const file = join(directory, `part${name}.conf`);
  writeFileSync(file, text);
  const path = draw.rarely(2) ? file : file.replace('part', 'par*');
  // The content is printed along with differences.
  return { before: text.replaceAll(/^(?=.)/gm, '# '), within: [`import ${path}`, ...left] };
}

function directivesOf(
  draw: Draw,
  scene: Parameters<Part>[1],
  plugins: Set<string>,
): readonly string[] {
  const own = new Set<string>();
  const lines: string[] = [];
  const add = (name: string, part: Part): void => {
    own.add(name);
    lines.push(part(draw, scene));
  };
  const secondary = scene.primary === null ? [] : ['secondary'];
  const answering = draw.some(
    [
      ...secondary,
      'hosts',
      'file',
      'template',
      'template',
      'forward',
      'forward',
      'forward',
      'forward',
      'whoami',
      'erratic',
    ],
    3,
  );
  for (const name of answering)
    if (name === 'template' || !(own.has(name) || (name === 'file' && own.has('secondary'))))
      add(name, sources[name]!);
  if (!answering.includes('forward') && draw.rarely(2)) add('forward', sources['forward']!);
  for (const name of draw.some(Object.keys(modifiers), 4)) add(name, modifiers[name]!);
  if ((own.has('file') || own.has('secondary')) && !own.has('transfer') && draw.rarely(2))
    add('transfer', modifiers['transfer']!);
  if (own.has('geoip') && !own.has('metadata')) add('metadata', modifiers['metadata']!);
  for (const name of own) plugins.add(name);
  return lines;
}

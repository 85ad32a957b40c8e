/** Compares two replies to one query. */
import { TYPE } from '../../../src/server/wire/iana.ts';
import { readMessage, type DnsRecord, type Message } from '../../../src/server/wire/message.ts';
import { flagNames, printData } from '../../../src/server/wire/print.ts';
import type { RandomBlock } from './corefiles.ts';
import type { RandomQuery } from './queries.ts';

/** Describes each difference not listed in docs/coredns.md in a few words. Empty if there are none. */
export function differences(
  query: RandomQuery,
  drawn: RandomBlock,
  a: Uint8Array | null,
  b: Uint8Array | null,
): string[] {
  // The block shows imported lines as comments.
  const block = { ...drawn, text: drawn.text.replaceAll(/^# ?/gm, '') };
  // For aliases that lead back to a template or rewrite rule, and for unsolicited NOTIFY messages, CoreDNS does not
  // reply.
  const circle = /IN CNAME|rewrite (?:stop |continue )?cname/.test(block.text);
  if (a === null && (circle || query.opcode === 4)) return [];
  // With dns64 in front of whoami, which has neither AAAA nor A records, CoreDNS does not reply.
  if (a === null && query.type === 28 && ['dns64', 'whoami'].every((one) => block.plugins.has(one)))
    return [];
  // With dns64 in front of minimal, which panics if no plugin replies.
  if (
    a === null &&
    query.type === 28 &&
    ['dns64', 'minimal'].every((one) => block.plugins.has(one)) &&
    b !== null &&
    (b[3]! & 15) === 5
  )
    return [];
  // With autopath in front of an acl that drops queries, CoreDNS answers SERVFAIL.
  if (b === null && a !== null && (a[3]! & 15) === 2 && dropsBehindAutopath(block)) return [];
  if (a === null || b === null)
    return a === b
      ? []
      : [`${a === null ? 'silence' : 'a reply'}, ours ${b === null ? 'silence' : 'a reply'}`];
  let theirs: Message;
  let ours: Message;
  try {
    theirs = readMessage(a);
    ours = readMessage(b);
  } catch (error) {
    return [`unreadable: ${String(error)}`];
  }
  const pair: Pair = {
    query,
    block,
    has: (...names) => names.some((name) => block.plugins.has(name)),
    theirs,
    ours,
    theirsSize: a.length,
  };
  const found: string[] = [];
  const check = (what: string, one: string, other: string): void => {
    if (one === other) return;
    const difference: Difference = { what, theirs: one, ours: other };
    const rule = rules.find((each) => each.is(difference, pair));
    if (rule === undefined) found.push(`${what} ${one}, ours ${other}`);
  };
  check('id', String(theirs.id), String(ours.id));
  check('opcode', String((theirs.flags >> 11) & 15), String((ours.flags >> 11) & 15));
  check('rcode', String(theirs.rcode), String(ours.rcode));
  for (const flag of ['qr', 'aa', 'tc', 'rd', 'ra', 'ad', 'cd'])
    check(
      flag,
      String(flagNames(theirs.flags).includes(flag)),
      String(flagNames(ours.flags).includes(flag)),
    );
  check('question', JSON.stringify(theirs.question), JSON.stringify(ours.question));
  for (const section of ['answer', 'authority', 'additional'] as const)
    check(section, shown(theirs[section]), shown(ours[section]));
  check('opt', String(theirs.edns !== null), String(ours.edns !== null));
  if (theirs.edns === null || ours.edns === null) return found;
  check('size', String(theirs.edns.udpSize), String(ours.edns.udpSize));
  check('do', String(theirs.edns.dnssecOk), String(ours.edns.dnssecOk));
  check('z', String(theirs.edns.z), String(ours.edns.z));
  const codes = new Set([...theirs.edns.options, ...ours.edns.options].map(({ code }) => code));
  for (const code of codes) check(`option${code}`, optionOf(theirs, code), optionOf(ours, code));
  return found;
}

function dropsBehindAutopath({ plugins, text }: RandomBlock): boolean {
  return plugins.has('autopath') && plugins.has('acl') && /^ *drop /m.test(text);
}

/** True if both transfer the same zone, or neither transfers any. */
export function transfersAgree({ plugins }: RandomBlock, theirs: string, ours: string): boolean {
  // Transfers pass through autopath and cache unchanged. erratic serves its own zones.
  if (['autopath', 'cache', 'erratic', 'rewrite'].some((name) => plugins.has(name))) return true;
  if (theirs === ours) return true;
  const none = /^(?:rcode|closed|no end)/;
  return none.test(theirs) && none.test(ours);
}

interface Difference {
  /** The part of the reply that differs: `rcode`, a flag, a section, `opt`, `size`, `do`, `z`, `option15` … */
  readonly what: string;
  readonly theirs: string;
  readonly ours: string;
}

interface Pair {
  readonly query: RandomQuery;
  readonly block: RandomBlock;
  readonly theirs: Message;
  readonly ours: Message;
  /** The size of CoreDNS's reply in bytes. */
  readonly theirsSize: number;
  /** True if the block has one of these plugins. */
  has(...plugins: readonly string[]): boolean;
}

interface Rule {
  readonly told: string;
  is(difference: Difference, pair: Pair): boolean;
}

/** A reply's content: its code, its sections, and the flags and options that depend on them. */
const CONTENT = /^(?:rcode|aa|ra|ad|tc|answer|authority|additional|option\d+)$/;

/** For rules about a whole reply. Matches any difference in content, but not in the message structure. */
function content(is: (pair: Pair) => boolean): Rule['is'] {
  return ({ what }, pair) => CONTENT.test(what) && is(pair);
}

const rules: readonly Rule[] = [
  {
    told: 'geoip: IPv4 subnets of EDNS are found',
    is: ({ what, theirs, ours }, { has, block, query }) =>
      what === 'answer' &&
      has('geoip') &&
      block.text.includes('edns-subnet') &&
      /\b0008000700011800/.test(query.text) &&
      theirs.replaceAll(quoted, '') === ours.replaceAll(quoted, ''),
  },
  {
    told: 'hosts: a duplicate address is sent once',
    is: ({ what, theirs, ours }, { has }) =>
      what === 'answer' && has('hosts') && [...new Set(theirs.split(' | '))].join(' | ') === ours,
  },
  {
    told: 'cache: a subnet of the upstream comes with its reply',
    is: ({ what, theirs }, { has, ours }) =>
      what === 'option8' && has('cache') && has('forward') && theirs === '' && ours.rcode === 0,
  },
  {
    told: 'cache: NXDOMAIN for one type of a name that has another',
    is: content(
      ({ has, block, theirs, ours }) =>
        has('cache') &&
        theirs.rcode === 3 &&
        ours.rcode === 0 &&
        (ours.answer.length === 0 || /^\s*rcode NXDOMAIN/m.test(block.text)),
    ),
  },
  {
    told: 'template: HINFO of one word',
    is: content(
      ({ query, block, ours }) =>
        query.type === 13 &&
        ours.rcode === 2 &&
        block.text.includes('"{{ .Name }} 60 IN {{ .Type }} 192.0.2.77"'),
    ),
  },
  {
    told: 'flags: a malformed message is returned with its opcode',
    is: ({ what, ours }, { query }) =>
      what === 'opcode' && query.odd && ours === String(query.opcode),
  },
  {
    told: 'dns64: an answer of other records than AAAA stays',
    is: content(
      ({ has, query, ours }) =>
        has('dns64') &&
        query.type === 28 &&
        [...ours.answer, ...ours.authority].some(({ type }) => ![2, 5, 6, 28].includes(type)),
    ),
  },
  {
    told: 'DS questions, where views share a zone',
    is: content(({ has, query }) => has('view') && query.type === 43),
  },
  {
    told: 'transfer: IXFR over UDP, IXFR without an SOA record',
    is: content(({ has, query }) => has('transfer') && query.type === 251),
  },
  {
    told: 'clients that sent no EDNS get none',
    is: ({ what, ours }, { query }) => what === 'opt' && ours === 'false' && !query.edns,
  },
  {
    told: 'bufsize: the OPT record of the reply repeats what the client said',
    is: ({ what, ours }, { query, has }) =>
      what === 'size' && has('bufsize') && ours === String(query.size),
  },
  {
    told: 'acl, nsid, template: the DO bit is the client’s',
    is: ({ what, ours }, { query, has }) =>
      what === 'do' && has('acl', 'nsid', 'template') && ours === String(query.do),
  },
  {
    told: 'SERVFAIL and REFUSED say why',
    is: ({ what, theirs }, { ours }) =>
      what === 'option15' && theirs === '' && [2, 5].includes(ours.rcode),
  },
  {
    told: 'cache: extended errors of templates stay',
    is: ({ what, theirs }, { has }) => what === 'option15' && theirs === '' && has('cache'),
  },
  {
    told: 'options come back beside an extended error and an identifier, too',
    is: ({ what, theirs }, { has }) =>
      /option(3|9|10|11|12)$/.test(what) && theirs === '' && has('template', 'nsid', 'acl'),
  },
  {
    told: 'COOKIE, KEEPALIVE and PADDING stay between the two servers',
    is: ({ what, ours }, { has }) =>
      /option(10|11|12)$/.test(what) && has('forward') && ours === '',
  },
  {
    told: 'EDNS options of clients are not sent upstream, so the upstream returns none',
    is: ({ what, theirs, ours }, { has, query }) =>
      what.startsWith('option') && has('forward') && query.edns && theirs !== '' && ours === '',
  },
  {
    told: 'forward: queries have a form of their own, and replies to options that differ between clients are not cached',
    is: ({ what, theirs, ours }, { has }) =>
      what === 'answer' && has('forward') && isOwnForm(theirs, ours, has('cache')),
  },
  {
    told: 'replies over UDP have at most 1232 bytes, unless bufsize sets another limit',
    is: content(
      ({ has, query, ours, theirsSize }) =>
        !query.overTcp &&
        !has('bufsize') &&
        theirsSize > UDP_LIMIT &&
        query.size > UDP_LIMIT &&
        (ours.flags & 0x200) !== 0,
    ),
  },
  {
    told: 'a COOKIE is ignored',
    is: ({ what, ours }) => what === 'option10' && ours === '',
  },
  {
    told: 'options that rules name without a value are not returned',
    is: ({ what, theirs, ours }) => what === 'option65518' && theirs === '=65666768' && ours === '',
  },
  {
    told: 'AD for those who set AD or DO',
    is: ({ what, ours }, { query }) => what === 'ad' && ours === 'false' && !query.ad && !query.do,
  },
  {
    told: 'CD and RD as the client says',
    is: ({ what, ours }, { query }) =>
      ['cd', 'rd'].includes(what) &&
      ours === String((query.bytes[what === 'rd' ? 2 : 3]! & (what === 'rd' ? 1 : 16)) !== 0),
  },
  {
    told: 'negative answers of zone files: the lower of TTL and minimum; spelling',
    is: ({ what, theirs, ours }, { has }) =>
      what === 'authority' &&
      has('file', 'secondary') &&
      noTtl(theirs).toLowerCase() === noTtl(ours).toLowerCase(),
  },
  {
    told: 'minimal: EDNS options of the reply stay',
    is: ({ what, theirs, ours }, { has }) =>
      /option/.test(what) && has('minimal') && (theirs === '' || ours === ''),
  },
  {
    told: 'autopath: a question for the search domain itself is answered; CoreDNS: SERVFAIL',
    is: content(
      ({ has, theirs, ours }) => has('autopath') && theirs.rcode === 2 && ours.rcode !== 2,
    ),
  },
  {
    told: 'truncated replies are fetched whole',
    is: content(
      ({ has, theirs, ours, query }) =>
        has('forward') &&
        ((theirs.flags & 0x200) !== 0 ||
          (!query.edns &&
            (ours.flags & 0x200) !== 0 &&
            has('rewrite', 'bufsize', 'file', 'secondary'))),
    ),
  },
  {
    told: 'Only standard queries that want recursion fill the cache',
    is: content(
      ({ has, query }) => has('cache') && ((query.bytes[2]! & 1) === 0 || query.opcode !== 0),
    ),
  },
  {
    told: 'file: the apex exists, whatever it owns',
    is: content(
      ({ query, block, ours }) =>
        ours.rcode === 0 &&
        [...block.text.matchAll(/(?:file \S+|secondary) (\S+)/g)].some(
          ([, zone]) => zone === query.name,
        ) &&
        ![2, 6].includes(query.type),
    ),
  },
  {
    told: 'class: file answers IN alone',
    is: content(
      ({ has, query, block, theirs, ours }) =>
        has('file', 'secondary') &&
        ((theirs.flags & 0x400) !== 0 || ours.rcode === 5 || has('header')) &&
        (query.class !== 1 || /rewrite (?:stop |continue )?class /.test(block.text)),
    ),
  },
  {
    told: 'erratic counts its own queries',
    is: ({ what }, { has }) => what === 'tc' && has('erratic'),
  },
  {
    told: 'cache: options of the query do not come back in replies from elsewhere',
    is: ({ what, ours }, { has }) => /option/.test(what) && has('cache') && ours === '',
  },
  {
    told: 'file: RRSIG and NSEC of an alias are its own',
    is: content(
      ({ has, query, theirs }) =>
        has('file', 'secondary') &&
        [46, 47].includes(query.type) &&
        theirs.answer.some(({ type }) => type === 5),
    ),
  },
  {
    told: 'minimal: what answers with other types than the one that was asked for keeps its SOA record',
    is: ({ what, theirs, ours }, { has, query, theirs: reply }) =>
      what === 'authority' &&
      has('minimal') &&
      theirs === '' &&
      / 6 1 /.test(ours) &&
      reply.answer.every(({ type }) => type !== query.type),
  },
  {
    told: 'dns64: an answer without AAAA records that whoami gives goes out',
    is: ({ what, theirs }, { has, query }) =>
      what === 'additional' && query.type === 28 && has('dns64') && has('whoami') && theirs === '',
  },
  {
    told: 'dns64: only standard queries are translated',
    is: content(({ has, query }) => has('dns64') && query.type === 28 && query.opcode !== 0),
  },
  {
    told: 'ANY of a zone file',
    is: content(
      ({ has, query, theirs, ours }) =>
        has('file', 'secondary') &&
        query.type === 255 &&
        theirs.answer.length === 0 &&
        ours.answer.length > 0,
    ),
  },
  {
    told: 'dns64: words behind a PREFIX',
    is: content(({ block, query }) => /dns64 \S+ \{/.test(block.text) && query.type === 28),
  },
  {
    told: 'dns64: the question for A fails; flags',
    is: ({ what }, { has, query, ours }) =>
      has('dns64') &&
      query.type === 28 &&
      (['ra', 'aa', 'ad'].includes(what) || (CONTENT.test(what) && ours.rcode !== 0)),
  },
  {
    told: 'header: RD of replies that no plugin wrote',
    is: ({ what }, { block }) =>
      what === 'rd' && /^ *(?:query|response) (?:set|clear) .*\brd\b/m.test(block.text),
  },
  {
    told: 'nsid: replies that no plugin wrote',
    is: ({ what, theirs }, { has }) =>
      what === 'option3' && has('nsid') && (theirs === '=' || theirs === ''),
  },
  {
    told: 'hosts: reverse names exist for all types',
    is: content(
      ({ has, query, ours }) =>
        has('hosts') &&
        query.name.endsWith('.arpa.') &&
        ours.rcode === 0 &&
        ours.answer.every(({ type }) => type === 12),
    ),
  },
  {
    told: 'edns0 local append adds nothing when it is there',
    is: ({ what }, { block }) =>
      what === 'option65518' && block.text.includes('edns0 local append'),
  },
  {
    told: 'rewrite: the question is restored',
    is: ({ what, ours }, { has, query }) =>
      what === 'question' &&
      has('rewrite') &&
      JSON.parse(ours)[0].name.toLowerCase() === query.name.toLowerCase(),
  },
  {
    told: 'autopath: the question keeps its spelling',
    is: ({ what, ours }, { has, query }) =>
      what === 'question' &&
      has('autopath') &&
      JSON.parse(ours)[0].name.toLowerCase() === query.name.toLowerCase(),
  },
  {
    told: 'hosts: PTR of a name with addresses gives NODATA',
    is: content(
      ({ has, query, ours }) =>
        has('hosts') && query.type === 12 && ours.rcode === 0 && ours.answer.length === 0,
    ),
  },
  {
    told: 'cache: transfers pass unchanged',
    is: content(({ has, query }) => has('cache') && [251, 252].includes(query.type)),
  },
  {
    told: 'rewrite: a rule that changes nothing adds no OPT',
    is: ({ what }, { has, query }) =>
      has('rewrite') && !query.edns && what === 'answer' && query.name.startsWith('echo.'),
  },
  {
    told: 'an alias of a zone that leads to NODATA has the SOA record; records are not repeated',
    is: ({ what, theirs, ours }, pair) =>
      pair.has('file', 'secondary') &&
      pair.theirs.answer.some(({ type }) => type === 5) &&
      (what === 'authority' || (what === 'answer' && within(ours, theirs))),
  },
  {
    told: 'template: types without a name have one',
    is: ({ ours }, { has, query }) => has('template') && ours.includes(`TYPE${query.type} `),
  },
  {
    told: 'rewrite: large TTLs do not change flags of OPT',
    is: ({ what, ours }, { block }) =>
      what === 'z' && ours === 'undefined' && /rewrite .*\b(?:ttl|cname) /.test(block.text),
  },
  {
    told: 'minimal: a reply that no plugin wrote',
    is: content(
      ({ has, theirs, ours }) => has('minimal') && theirs.rcode === 2 && ours.rcode === 5,
    ),
  },
  {
    told: 'autopath: an answer that begins with an alias is unchanged; only standard queries of class IN are completed, and no transfers',
    is: (difference, { has, query }) =>
      has('autopath') &&
      (query.class === 1 && query.opcode === 0 && ![251, 252].includes(query.type)
        ? difference.what === 'answer' &&
          / 5 1 /.test(difference.theirs) &&
          within(withoutAliases(difference.ours), withoutAliases(difference.theirs))
        : CONTENT.test(difference.what)),
  },
  {
    told: 'dns64: nothing is translated with DO and CD',
    is: content(
      ({ has, query }) =>
        has('dns64') && query.type === 28 && query.do && (query.bytes[3]! & 0x10) !== 0,
    ),
  },
  {
    told: 'hosts: an exact name hides a wildcard for both families',
    is: content(
      ({ has, query, block, ours }) =>
        has('hosts') &&
        [1, 28].includes(query.type) &&
        block.text.includes(' *.') &&
        ours.answer.length === 0,
    ),
  },
  {
    told: 'rewrite: edns0 nsid append adds nothing when it is there',
    is: ({ what, theirs }, { block }) =>
      what === 'option3' && theirs === '= =' && block.text.includes('edns0 nsid append'),
  },
  {
    told: 'template: classes without a name have one',
    is: ({ what, theirs, ours }, { has, query }) =>
      ['answer', 'authority', 'additional'].includes(what) &&
      has('template') &&
      ![1, 3, 4, 255].includes(query.class) &&
      ours.replaceAll(` ${query.class} `, ' 1 ').replaceAll(`CLASS${query.class} `, '') ===
        theirs.replaceAll(` ${query.class} `, ' 1 '),
  },
  {
    told: 'smaller replies: of one that is cut, more records fit',
    is: ({ what, theirs, ours }, pair) =>
      what === 'answer' &&
      pair.has('erratic') &&
      (pair.theirs.flags & pair.ours.flags & 0x200) !== 0 &&
      ours.startsWith(theirs),
  },
  {
    told: 'cache: an entry ends at a moment of its own in each server',
    is: ({ what, theirs, ours }, { has }) =>
      has('cache') &&
      (what === 'aa' ||
        theirs.replaceAll(ttls, ' ').toLowerCase() === ours.replaceAll(ttls, ' ').toLowerCase()),
  },
  {
    told: 'cache: an entry ends at a moment of its own in each server, and one of whoami is of the client that it was made for',
    is: ({ what, theirs, ours }, { has }) =>
      what === 'additional' &&
      has('cache') &&
      has('whoami') &&
      withoutClient(theirs) === withoutClient(ours),
  },
  {
    told: 'flags: a message that is not a query is answered without the flags that it must not have',
    is: ({ what }, { query }) => query.odd && ['ra', 'aa', 'tc', 'ad'].includes(what),
  },
  {
    told: 'names follow the spelling of the question',
    is: ({ what, theirs, ours }) =>
      ['answer', 'authority', 'additional'].includes(what) &&
      theirs.toLowerCase() === ours.toLowerCase(),
  },
];

/** The TTLs in a printed section, together with the type and class before them. */
const ttls = /(?<=\. \d+ \d+) \d+ /g;

const quoted = /"[^"]*"/g;

/** Bytes of the largest reply over UDP without `bufsize`. */
const UDP_LIMIT = 1232;

const AD = 0x20;

/** The part of an `echo` answer that shows the flags and the OPT record of the query that the upstream received. */
const received = / flags=(\d+) (edns=none|edns=v\d do=\w+)(?: \[([^\]"\\]*)\]?)?/;

/** True if the upstream received the same question, RD, CD and DO from both, and no more options from ndots. */
function isOwnForm(theirs: string, ours: string, isCached: boolean): boolean {
  const [one, other] = [received.exec(theirs), received.exec(ours)];
  if (one === null || other === null) return false;
  const options = new Set((one[3] ?? '').split(' '));
  const rest = (text: string): string => {
    const others = text.replace(received, '').toLowerCase();
    return isCached ? others.replaceAll(ttls, ' ') : others;
  };
  return (
    (Number(one[1]) | AD) === (Number(other[1]) | AD) &&
    one[2] === other[2] &&
    (other[3] ?? '').split(' ').every((option) => option === '' || options.has(option)) &&
    rest(theirs) === rest(ours)
  );
}

/** A section without the TTLs and the addresses of clients. */
function withoutClient(section: string): string {
  return section.replaceAll(ttls, ' ').replaceAll(/127\.0\.[\d.]+/g, '');
}

/** True if all records in one section are also in the other, ignoring upper and lower case. */
function within(section: string, other: string): boolean {
  const all = new Set(other.toLowerCase().split(' | '));
  return section
    .toLowerCase()
    .split(' | ')
    .every((record) => all.has(record));
}

function withoutAliases(section: string): string {
  return section
    .split(' | ')
    .filter((record) => !/^\S+ 5 1 /.test(record))
    .join(' | ');
}

function noTtl(text: string): string {
  return text.replaceAll(/ 6 1 \d+ /g, ' 6 1 TTL ');
}

function optionOf({ edns }: Message, code: number): string {
  return (edns?.options ?? [])
    .filter((one) => one.code === code)
    .map(({ data }) => `=${Buffer.from(data).toString('hex')}`)
    .join(' ');
}

function shown(records: readonly DnsRecord[]): string {
  return records
    .map(({ name, type, class: rclass, ttl, data }) => {
      let text = printData(type, data);
      // whoami: each query uses its own port, so a cached reply shows the port of the original query.
      if (type === TYPE.SRV) text = text.replace(/^0 0 \d+ \.$/, '0 0 PORT .');
      const owner = name
        .toLowerCase()
        .replace(/^_(?:udp|tcp)\.(?=.*)/, text.startsWith('0 0 PORT') ? '_PROTO.' : '$&');
      return `${owner} ${type} ${rclass} ${ttl} ${text}`;
    })
    .toSorted()
    .join(' | ');
}

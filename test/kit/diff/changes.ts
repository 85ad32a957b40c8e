/** Random single changes to Corefiles, like the changes that people make. */
import type { Random } from '../../../src/server/base/random.ts';
import { pick } from '../pick.ts';

/** A Corefile with one change and its description, or null if the change does not apply to this file. */
export type Change = (text: string, random: Random) => string | null;

/** Replaces one of the pattern's matches. */
const swap =
  (pattern: RegExp, ...others: readonly string[]): Change =>
  (text, random) => {
    const places = [...text.matchAll(pattern)];
    if (places.length === 0) return null;
    const place = pick(random, places);
    const other = pick(random, others);
    return (
      text.slice(0, place.index) +
      place[0].replace(pattern, other) +
      text.slice(place.index + place[0].length)
    );
  };

/** Adds lines at the start of a server block. */
const add =
  (...lines: readonly string[]): Change =>
  (text, random) => {
    const places = [...text.matchAll(/^\S.* \{$/gm)];
    const place = pick(random, places);
    const at = place.index + place[0].length;
    return `${text.slice(0, at)}\n${pick(random, lines)}${text.slice(at)}`;
  };

/** Adds a property between a directive's braces, and adds the braces if necessary. */
const property =
  (directive: string, ...lines: readonly string[]): Change =>
  (text, random) => {
    const places = [...text.matchAll(new RegExp(`^ +${directive}( .*)?$`, 'gm'))];
    if (places.length === 0) return null;
    const place = pick(random, places);
    const line = pick(random, lines);
    const end = place.index + place[0].length;
    const head = text.slice(0, end);
    return head.endsWith('{')
      ? `${head}\n        ${line}${text.slice(end)}`
      : `${head} {\n        ${line}\n    }${text.slice(end)}`;
  };

const removeLine: Change = (text, random) => {
  const lines = text.split('\n');
  const plain = lines.flatMap((line, at) => (/^ +[^{}]+$/.test(line) ? [at] : []));
  if (plain.length === 0) return null;
  const gone = pick(random, plain);
  return lines.filter((_, at) => at !== gone).join('\n');
};

/** Swaps two lines in a block. */
const moveLine: Change = (text, random) => {
  const lines = text.split('\n');
  const plain = lines.flatMap((line, at) => (/^ {4}[a-z][^{}]*$/.test(line) ? [at] : []));
  const near = plain.filter((at) => plain.includes(at + 1));
  if (near.length === 0) return null;
  const at = pick(random, near);
  [lines[at], lines[at + 1]] = [lines[at + 1]!, lines[at]!];
  return lines.join('\n');
};

const addBlock =
  (...blocks: readonly string[]): Change =>
  (text, random) =>
    `${text}${pick(random, blocks)}`;

/**
 * The changes that people make, one at a time. `keepttl` is excluded, because two servers' TTLs may differ by a second
 * anyway.
 */
export const changes: readonly Change[] = [
  removeLine,
  removeLine,
  removeLine,
  moveLine,
  swap(/^ +cache \d+/gm, '    cache 10', '    cache 60', '    cache 300', '    cache'),
  swap(/\bttl \d+/g, 'ttl 5', 'ttl 60', 'ttl 10'),
  swap(/pods \w+/g, 'pods insecure', 'pods disabled', 'pods verified'),
  swap(
    /fallthrough in-addr\.arpa ip6\.arpa/g,
    'fallthrough',
    'fallthrough in-addr.arpa',
    'fallthrough ip6.arpa',
  ),
  swap(
    /kubernetes cluster\.local in-addr\.arpa ip6\.arpa/g,
    'kubernetes cluster.local',
    'kubernetes cluster.local 10.96.0.0/12',
    'kubernetes k8s.example in-addr.arpa ip6.arpa',
    'kubernetes Cluster.Local in-addr.arpa ip6.arpa',
  ),
  swap(
    /forward \. \S+/g,
    'forward . 127.50.0.2',
    'forward . 127.50.0.3',
    'forward example.com 127.50.0.1',
  ),
  property(
    'kubernetes',
    'noendpoints',
    'endpoint_pod_names',
    'ignore empty_service',
    'namespaces shop',
    'labels app=web',
  ),
  property(
    'cache',
    'disable success cluster.local',
    'disable denial',
    'denial 9984 5',
    'success 9984 20',
    'servfail 0s',
    'servfail 30s',
    'prefetch 10 1m 10%',
  ),
  property(
    'forward',
    'except example.com',
    'force_tcp',
    'prefer_udp',
    'max_fails 5',
    'expire 5s',
    'failover SERVFAIL',
    'failover REFUSED',
    'max_concurrent 500',
    'policy sequential',
    'policy round_robin',
  ),
  add(
    '    hosts {\n        10.5.5.5 db.example.com\n        fallthrough\n    }',
    '    hosts {\n        10.5.5.5 db.example.com\n    }',
    '    hosts {\n        10.5.5.6 www.example.org api.example.org\n        ttl 77\n        fallthrough example.org\n    }',
  ),
  add(
    '    rewrite name api.example.com www.example.com',
    '    rewrite name suffix .old.example.com .new.example.com answer auto',
    '    rewrite name prefix web- api-',
    '    rewrite name regex (.*)\\.in\\.example\\.com {1}.cluster.local answer auto',
    '    rewrite type ANY A',
    '    rewrite name exact backend.example.com web.shop.svc.cluster.local',
    '    rewrite stop type AAAA A',
    '    rewrite name substring test prod answer auto',
    '    rewrite ttl exact www.example.com. 12',
    '    rewrite ttl suffix .example.com. 5-15',
  ),
  add(
    '    template IN AAAA . {\n        rcode NXDOMAIN\n    }',
    '    template IN AAAA . {\n        rcode NOERROR\n    }',
    '    template ANY ANY ads.example.com {\n        rcode NXDOMAIN\n    }',
    '    template IN A ip.example.com {\n        match "^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)[.]ip[.]example[.]com[.]$"\n        answer "{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{ .Group.b }}"\n        fallthrough\n    }',
    '    template IN A ip.example.com {\n        match "^ip-([0-9]+)[.]ip[.]example[.]com[.]$"\n        answer "{{ .Name }} 60 IN A 10.0.0.{{ index .Match 1 }}"\n    }',
  ),
  add(
    '    acl {\n        block net 10.9.0.0/16\n    }',
    '    acl example.com {\n        filter net 10.8.0.0/16\n    }',
    '    acl {\n        block type AAAA net *\n    }',
    '    acl {\n        allow net 127.0.0.0/8\n        block\n    }',
    '    acl sub.example.com {\n        drop type TXT net *\n    }',
  ),
  add(
    '    any',
    '    minimal',
    '    loadbalance',
    '    whoami',
    '    chaos CoreDNS-9 admin',
    '    nsid here',
    '    local',
    '    metadata',
    '    bufsize 512',
    '    bufsize 1232',
    '    errors {\n        stacktrace\n    }',
    '    log . {\n        class error\n    }',
    '    dns64',
    '    header {\n        response set aa\n    }',
    '    cancel',
    '    timeouts {\n        read 5s\n    }',
  ),
  addBlock(
    'corp.example:5300 {\n    forward . 127.50.0.2\n}\n',
    'example.com:5300 {\n    cache 10\n    forward . 127.50.0.1\n}\n',
    'sub.example.org:5300 {\n    hosts {\n        10.4.4.4 a.sub.example.org\n    }\n}\n',
    '10.0.0.0/8:5300 {\n    forward . 127.50.0.3\n}\n',
    'svc.cluster.local:5300 {\n    forward . 127.50.0.2\n}\n',
  ),
  (text) => text.replace(/\n/, ' # changed\n'),
  (text) => text.replaceAll(/^ {4}(?=\S)/gm, '\t'),
];

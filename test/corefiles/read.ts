/** Reads the Corefiles in this directory. */
import { readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { parseCorefile } from '../../src/server/corefile/parse.ts';
import type { ParseOutput } from '../../src/server/corefile/parse.ts';
import type { Syntax } from '../../src/server/corefile/syntax.ts';

export const directory: string = import.meta.dirname;

/** The directives in chain order. */
const directives: readonly string[] = (
  'root metadata geoip cancel proxyproto quic grpc_server https https3 timeouts multisocket reload nsid bufsize bind ' +
  'debug trace ready health pprof shed prometheus errors log dnstap local dns64 any chaos loadbalance tsig rewrite ' +
  'autopath acl cache header dnssec tls minimal template transfer hosts route53 azure clouddns k8s_external kubernetes ' +
  'file auto secondary etcd loop forward grpc erratic whoami on sign view nomad'
).split(' ');

export interface World {
  /** Other files by path, next to the Corefile. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly directives?: readonly string[];
  readonly syntaxes?: readonly Syntax[];
  readonly external?: Readonly<Record<string, string>>;
  readonly dnsPort?: number;
}

export function read(text: string, world: World = {}): ParseOutput {
  const files = new Map(Object.entries(world.files ?? {}));
  return parseCorefile({
    file: 'Corefile',
    text,
    dnsPort: world.dnsPort ?? 53,
    env: world.env ?? {},
    readFile: (path) => files.get(path) ?? missing(path),
    glob: (pattern) => [...files.keys()].filter((path) => fits(path, pattern)).toSorted(),
    directives: world.directives ?? directives,
    external: world.external ?? {},
    ...(world.syntaxes === undefined ? {} : { syntaxes: world.syntaxes }),
  });
}

/** Reads a file in this directory along with its imports. */
export function readFixture(name: string, more: readonly string[] = []): ParseOutput {
  const file = join(directory, name);
  return parseCorefile({
    file,
    text: readFileSync(file, 'utf8'),
    dnsPort: 53,
    env: {},
    readFile: (path) => readFileSync(path, 'utf8'),
    glob: (pattern) =>
      readdirSync(dirname(pattern))
        .filter((entry) => fits(entry, basename(pattern)))
        .toSorted()
        .map((entry) => join(dirname(pattern), entry)),
    directives: [...directives, ...more],
  });
}

function missing(path: string): never {
  throw Object.assign(new Error(`ENOENT: no such file: ${path}`), { code: 'ENOENT' });
}

function fits(path: string, pattern: string): boolean {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]');
  return new RegExp(`^${source}$`).test(path);
}

/** Programs that leave lookups to glibc, but change its hints or errors or cache its answers. */
import {
  clientLine,
  failed,
  found,
  soleClient,
  type ClientLine,
  type LookupOutcome,
  type Model,
  type Request,
  type Session,
  type ModelContext,
} from './client.ts';
import { GlibcSession } from './glibc.ts';
import { readGlibcConf } from './glibc-conf.ts';
import { usualGlibc } from './glibc-releases.ts';
import { fromLibc } from './go-errors.ts';
import { goReleases } from './go-releases.ts';
import {
  isAscii,
  isUtf8Locale,
  libidnName,
  nodeName,
  pythonName,
  type LabelProblem,
} from './idn.ts';
import { isLocalhostName } from './myhostname.ts';
import { nodeReleases } from './node-releases.ts';
import { Releases } from './releases.ts';

type LibcLookup = (
  session: GlibcSession,
  request: Request,
  context: ModelContext,
) => Promise<LookupOutcome>;

/** @param look performs one lookup using the glibc process */
function onGlibc(summary: string, look: LibcLookup): Model {
  return {
    summary,
    anyOrder: false,
    conf: (settings) => readGlibcConf(settings, usualGlibc),
    open(context): Session {
      const session = new GlibcSession(context, usualGlibc);
      return { lookup: (request) => look(session, request, context) };
    },
  };
}

function shown(
  result: LookupOutcome,
  show: (code: string, text: string, number: number | null) => LookupOutcome,
): LookupOutcome {
  const { failure } = result;
  return failure === null ? result : show(failure.code, failure.text, failure.number);
}

export const cgo: ClientLine = clientLine('cgo', goReleases, (version, traits) =>
  onGlibc(
    `a Go ${version} program built with cgo that uses libc's getaddrinfo (GODEBUG=netdns=cgo)`,
    async (session, request) => fromLibc(await session.lookup(request), traits),
  ),
);

/** Releases that do not differ. The version is only a label. */
function alike(name: string, versions: readonly string[]): Releases<object> {
  return new Releases(
    name,
    {},
    versions.map((version) => [version]),
  );
}

interface PythonTraits {
  /** The text of the UnicodeError for a label that the idna codec rejects. */
  refusal(problem: LabelProblem): string;
}

const refusals = {
  empty: 'label empty',
  long: 'label too long',
  prefix: 'Label starts with ACE prefix',
};

function oldRefusal({ kind }: LabelProblem): string {
  return kind === 'prefix' ? refusals.prefix : 'label empty or too long';
}

const pythonReleases = new Releases<PythonTraits>(
  'python',
  {
    refusal: (problem) =>
      `encoding with 'idna' codec failed (UnicodeError: ${oldRefusal(problem)})`,
  },
  [
    ['3.6'],
    ['3.7'],
    ['3.8'],
    ['3.9'],
    ['3.10'],
    ['3.11'],
    ['3.12', { refusal: oldRefusal }],
    [
      '3.13',
      {
        refusal({ kind, from, length }) {
          const where =
            kind === 'empty'
              ? `character '\\x2e' in position ${from}`
              : `characters in position ${from}-${from + length - 1}`;
          return `'idna' codec can't encode ${where}: ${refusals[kind]}`;
        },
      },
    ],
    ['3.14'],
  ],
);
const javaReleases = alike('java', ['8', '11', '17', '21', '25']);

export const python: ClientLine = clientLine('python', pythonReleases, (version, { refusal }) =>
  onGlibc(`socket.getaddrinfo in Python ${version}`, async (session, request, context) => {
    const name = request.name === '' ? '' : pythonName(request.name);
    if (typeof name !== 'string') {
      context.trace.step(`Python's idna codec rejects "${request.name}", so no query is sent`);
      return failed('UnicodeError', null, refusal(name));
    }
    tellAscii(context, 'Python', request.name, name);
    return shown(await session.lookup({ ...request, name }), (code, text, number) =>
      failed(code, null, `[Errno ${number ?? 0}] ${text}`),
    );
  }),
);

/** In milliseconds. A lookup that occupies one of Node's four threads for longer gets a remark. */
const slowMs = 1000;

export const node: ClientLine = clientLine('node', nodeReleases, (version) =>
  onGlibc(
    `dns.lookup in Node.js ${version}, also used by http and net: getaddrinfo in a pool of four threads`,
    async (session, request, context) => {
      const { clock } = context.network;
      const start = clock.now();
      const name = nodeName(request.name) ?? request.name;
      tellAscii(context, 'Node', request.name, name);
      const result = await session.lookup({ ...request, name });
      if (clock.now() - start > slowMs) {
        context.trace.step(
          'Node has four threads for lookups and files, so four such lookups make everything else wait',
        );
      }
      return shown(result, (code) => {
        const shownCode = code === 'EAI_NONAME' || code === 'EAI_NODATA' ? 'ENOTFOUND' : code;
        return failed(shownCode, null, shownCode);
      });
    },
  ),
);

const badUrl = failed('CURLE_URL_MALFORMAT', 3, 'URL using bad/illegal format or missing URL');

/** The name in ASCII as libidn2 converts it from the locale's encoding, or null if it cannot. */
function localeName(
  name: string,
  { settings, trace }: ModelContext,
  lettersOnly: boolean,
): string | null {
  if (isAscii(name)) return name;
  if (!isUtf8Locale(settings.env)) {
    trace.step(
      `"${name}" cannot be read in a locale that is not UTF-8 (LANG, LC_ALL), so no query is sent`,
    );
    return null;
  }
  return libidnName(name, lettersOnly);
}

function tellAscii(context: ModelContext, who: string, typed: string, name: string): void {
  if (typed !== name) context.trace.step(`${who} makes "${name}" of "${typed}"`);
}

export const curl: ClientLine = soleClient(
  'curl',
  onGlibc(
    'curl on glibc: getaddrinfo, but curl answers localhost itself',
    async (session, request, context) => {
      const { families } = request;
      const name = localeName(request.name, context, false);
      if (name === null) return badUrl;
      tellAscii(context, 'curl', request.name, name);
      if (isLocalhostName(name) && !name.endsWith('.') && !name.includes('localdomain')) {
        context.trace.step(`curl resolves "${name}" itself. No query is sent.`);
        return found(families.map((family) => (family === 4 ? '127.0.0.1' : '::1')));
      }
      return shown(await session.lookup({ ...request, name }), () =>
        failed('CURLE_COULDNT_RESOLVE_HOST', 6, `Could not resolve host: ${name}`),
      );
    },
  ),
);

const getentFailed = failed('2', null, 'getent exit 2');

export const getentAhosts: ClientLine = soleClient(
  'getent-ahosts',
  onGlibc(
    'getent ahosts NAME: getaddrinfo with AI_ADDRCONFIG and AI_IDN',
    async (session, request, context) => {
      const name = localeName(request.name, context, true);
      if (name === null) return getentFailed;
      tellAscii(context, 'AI_IDN', request.name, name);
      return shown(
        await session.lookup({ ...request, name, addrConfig: true }),
        () => getentFailed,
      );
    },
  ),
);

export const getentHosts: ClientLine = soleClient(
  'getent-hosts',
  onGlibc(
    'getent hosts NAME: gethostbyname2, the whole walk for IPv6, then for IPv4',
    async (session, request) => {
      for (const family of [6, 4] as const) {
        const result = await session.lookupOne(request.name, family);
        if (result.failure === null) return result;
      }
      return getentFailed;
    },
  ),
);

/** The JVM's cache times in milliseconds, for when there is no security manager. */
const keepGoodMs = 30_000;
const keepBadMs = 10_000;

export const java: ClientLine = clientLine('java', javaReleases, (version) => ({
  summary: `InetAddress.getAllByName in Java ${version}: getaddrinfo with an in-process cache`,
  anyOrder: false,
  conf: (settings) => readGlibcConf(settings, usualGlibc),
  open(context): Session {
    const session = new GlibcSession(context, usualGlibc);
    const cache = new Map<string, { readonly result: LookupOutcome; readonly until: number }>();
    return {
      async lookup(request) {
        const { clock } = context.network;
        const kept = cache.get(request.name);
        if (kept !== undefined && kept.until > clock.now()) {
          context.trace.step(
            `Java still has the ${kept.result.failure === null ? 'answer' : 'failure'} for "${request.name}" in its cache, so no query is sent`,
          );
          return kept.result;
        }
        // Only IPv4 if IPv6 is disabled in the kernel.
        const families = context.settings.host.loopback.includes(6)
          ? request.families
          : request.families.filter((family) => family === 4);
        const asked = await session.lookup({ ...request, families });
        // Java knows its own address for one name, and uses it if the lookup fails.
        const own = asked.failure !== null && request.name.toLowerCase() === 'localhost';
        const result = shown(own ? found(['127.0.0.1']) : asked, (code, text) =>
          failed(code, null, `${request.name}: ${text}`),
        );
        const good = result.failure === null;
        const again = good ? result : failed('UnknownHostException', null, request.name);
        cache.set(request.name, {
          result: again,
          until: clock.now() + (good ? keepGoodMs : keepBadMs),
        });
        return result;
      },
    };
  },
}));

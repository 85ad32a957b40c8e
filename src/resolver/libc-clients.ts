/** Programs that leave the lookup to glibc and only change its hints, its errors or remember its answers. */
import {
  failed,
  found,
  type Client,
  type Found,
  type Request,
  type Session,
  type Site,
} from './client.ts';
import { GlibcSession } from './glibc.ts';
import { fromLibc } from './go.ts';
import { isLocalhostName } from './myhostname.ts';

/** The glibc that the measured programs stood on. */
const underneath = '2.36';

function wrap(
  name: string,
  summary: string,
  look: (session: GlibcSession, request: Request, site: Site) => Promise<Found>,
): Client {
  return {
    name,
    version: '',
    summary,
    anyOrder: false,
    open(site): Session {
      const session = new GlibcSession(site, underneath);
      return { lookup: (request) => look(session, request, site) };
    },
  };
}

/** Changes how an error looks. */
function shown(
  result: Found,
  show: (code: string, text: string, number: number | null) => Found,
): Found {
  const { failure } = result;
  return failure === null ? result : show(failure.code, failure.text, failure.number);
}

export const cgo: Client = wrap(
  'cgo',
  "a Go program built with cgo that takes libc's getaddrinfo (GODEBUG=netdns=cgo)",
  async (session, request) => fromLibc(await session.lookup(request), '1.19'),
);

export const python: Client = wrap(
  'python',
  'socket.getaddrinfo of Python',
  async (session, request) =>
    shown(await session.lookup(request), (code, text, number) =>
      failed(code, null, `[Errno ${number ?? 0}] ${text}`),
    ),
);

export const node: Client = wrap(
  'node',
  'dns.lookup of Node.js, and all of its http and net: getaddrinfo in a pool of four threads',
  async (session, request, site) => {
    const result = await session.lookup(request);
    const waited = site.network.clock.now();
    if (waited > 1000) {
      site.trace.step(
        'Node has four threads for this and for files: four such lookups at a time and everything else waits',
      );
    }
    return shown(result, (code) => {
      const shownCode = code === 'EAI_NONAME' || code === 'EAI_NODATA' ? 'ENOTFOUND' : code;
      return failed(shownCode, null, shownCode);
    });
  },
);

export const curl: Client = wrap(
  'curl',
  'curl on glibc: getaddrinfo, but localhost is known',
  async (session, request, site) => {
    if (
      isLocalhostName(request.name) &&
      !request.name.endsWith('.') &&
      !request.name.includes('localdomain')
    ) {
      site.trace.step(`curl knows "${request.name}" itself. No query is sent.`);
      return found(request.families.map((family) => (family === 4 ? '127.0.0.1' : '::1')));
    }
    return shown(await session.lookup(request), () =>
      failed('CURLE_COULDNT_RESOLVE_HOST', 6, `Could not resolve host: ${request.name}`),
    );
  },
);

export const getentAhosts: Client = wrap(
  'getent-ahosts',
  'getent ahosts NAME: getaddrinfo with AI_ADDRCONFIG',
  async (session, request) =>
    shown(await session.lookup({ ...request, addrConfig: true }), () =>
      failed('2', null, 'getent exit 2'),
    ),
);

export const getentHosts: Client = wrap(
  'getent-hosts',
  'getent hosts NAME: gethostbyname2, the whole walk for IPv6, then for IPv4',
  async (session, request) => {
    for (const family of [6, 4] as const) {
      const result = await session.lookupOne(request.name, family);
      if (result.failure === null) return result;
    }
    return failed('2', null, 'getent exit 2');
  },
);

/** What the JVM keeps, without a security manager. */
const keepGoodMs = 30_000;
const keepBadMs = 10_000;

export const java: Client = {
  name: 'java',
  version: '',
  summary: 'InetAddress.getAllByName of Java 17: getaddrinfo, with a cache in the process',
  anyOrder: false,
  open(site): Session {
    const session = new GlibcSession(site, underneath);
    const cache = new Map<string, { readonly result: Found; readonly until: number }>();
    return {
      async lookup(request) {
        const { clock } = site.network;
        const kept = cache.get(request.name);
        if (kept !== undefined && kept.until > clock.now()) {
          site.trace.step(
            `Java still has its ${kept.result.failure === null ? 'answer' : 'failure'} for "${request.name}" in the process: no query is sent`,
          );
          return kept.result;
        }
        // IPv4 alone is asked for only if IPv6 is switched off in the whole kernel.
        const families = site.settings.host.loopback.includes(6)
          ? request.families
          : request.families.filter((family) => family === 4);
        const result = shown(await session.lookup({ ...request, families }), (code, text) =>
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
};

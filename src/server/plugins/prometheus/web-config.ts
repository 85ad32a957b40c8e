/**
 * The file given in `prometheus { tls }`, in the format that Prometheus exporters use (exporter-toolkit, "web
 * configuration").
 */
import { dirname, resolve } from 'node:path';
import type { SecureContextOptions, SecureVersion, TLSSocket } from 'node:tls';
import { whyFailed } from '../../base/why-failed.ts';
import { builtins } from '../../base/builtins.ts';
import { Problem } from '../../base/problem.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import type { HttpTls } from '../../engine/contract/control-context.ts';

/** The supported settings of `tls_server_config`. */
const known = [
  ...['cert', 'key', 'client_ca', 'cert_file', 'key_file', 'client_ca_file', 'client_auth_type'],
  ...['min_version', 'max_version', 'prefer_server_cipher_suites', 'client_allowed_sans'],
];

const absent: Readonly<Record<string, string>> = {
  basic_auth_users: 'To require client certificates: client_auth_type: RequireAndVerifyClientCert.',
  rate_limit: 'Remove it; the number of connections is limited.',
  cipher_suites: "Remove it; the runtime's secure cipher suites for TLS 1.2 and 1.3 are used.",
  curve_preferences: "Remove it; the runtime's secure defaults are used.",
};

const versions: Readonly<Record<string, SecureVersion>> = {
  TLS12: 'TLSv1.2',
  TLS13: 'TLSv1.3',
};

type Auth = { readonly request: boolean; readonly need: boolean; readonly verify: boolean };

const auths: Readonly<Record<string, Auth>> = {
  '': { request: false, need: false, verify: false },
  NoClientCert: { request: false, need: false, verify: false },
  RequestClientCert: { request: true, need: false, verify: false },
  RequireClientCert: { request: true, need: true, verify: false },
  RequireAnyClientCert: { request: true, need: true, verify: false },
  VerifyClientCertIfGiven: { request: true, need: false, verify: true },
  RequireAndVerifyClientCert: { request: true, need: true, verify: true },
};

/**
 * Reads the file, with any paths in it relative to its directory.
 * @throws Problem (`web-config`, `tls-unusable`)
 */
export async function readWebConfig(path: string): Promise<HttpTls> {
  const wrong = (text: string, remedy: string): Problem =>
    new Problem({ code: 'web-config', text: `plugin/prometheus: ${path}: ${text}`, remedy });
  const { tls_server_config: given = {}, ...others } = await readYaml(path, wrong);
  for (const name of Object.keys(others)) {
    // Scrapers are served over HTTP/1.1, so the HTTP/2 setting does not affect them.
    if (name === 'http_server_config') continue;
    throw wrong(`${name} is not available`, absent[name] ?? 'Take it away.');
  }
  const tls = given as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(tls)) {
    if (!known.includes(name))
      throw wrong(`${name} is not available`, absent[name] ?? `Known: ${known.join(', ')}.`);
  }
  const text = (name: string): string => {
    const value = tls[name] ?? '';
    if (typeof value === 'string') return value;
    throw wrong(`${name} is not text`, `Write ${name}: TEXT.`);
  };
  const version = (name: string, usual: string): SecureVersion => {
    const found = versions[text(name) || usual];
    if (found === undefined)
      throw wrong(`${name}: unknown TLS version ${text(name)}`, 'Write TLS12 or TLS13.');
    return found;
  };
  for (const kind of ['cert', 'key']) {
    if (text(kind) === '' && text(`${kind}_file`) === '')
      throw wrong(`missing one of ${kind} or ${kind}_file`, `Add ${kind}_file: FILE.`);
  }
  const auth = auths[text('client_auth_type')];
  if (auth === undefined)
    throw wrong(
      `invalid ClientAuth: ${text('client_auth_type')}`,
      `Known: ${Object.keys(auths).filter(Boolean).join(', ')}.`,
    );
  const hasAuthority = text('client_ca') !== '' || text('client_ca_file') !== '';
  if (hasAuthority && !auth.request)
    throw wrong(
      "client CA's have been configured without a Client Auth Policy",
      'Add client_auth_type: RequireAndVerifyClientCert.',
    );
  const names = (tls['client_allowed_sans'] ?? []) as readonly string[];
  const read = (name: string): string => {
    const named = text(`${name}_file`);
    if (named === '') return text(name);
    const file = resolve(dirname(path), named);
    const content = readFileText(file, FILE_MAX.small);
    // The runtime treats an empty text as absent, and would then serve without a certificate.
    if (content.trim() === '') throw new Error(`${file} is empty`);
    return content;
  };
  const load = (): SecureContextOptions => ({
    cert: read('cert'),
    key: read('key'),
    ...(hasAuthority && { ca: read('client_ca') }),
    minVersion: version('min_version', 'TLS12'),
    maxVersion: version('max_version', 'TLS13'),
  });
  try {
    builtins.tls().createSecureContext(load());
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem({
      code: 'tls-unusable',
      text: `plugin/prometheus: could not load TLS cert: ${whyFailed(error)}`,
      remedy: `Check the files named in ${path}: they must exist and be PEM, and the key must match the certificate.`,
      cause: error,
    });
  }
  return {
    key: JSON.stringify([path, tls]),
    load,
    requestCert: auth.request,
    // Client certificates are checked below, according to `client_auth_type`.
    rejectUnauthorized: false,
    welcome: (socket) => isWelcome(socket, auth, names),
  };
}

function isWelcome(socket: TLSSocket, { need, verify }: Auth, names: readonly string[]): boolean {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return !need;
  if (verify && !socket.authorized) return false;
  if (names.length === 0) return true;
  const has = (certificate.subjectAltName ?? '')
    .split(', ')
    .map((name) => name.slice(name.indexOf(':') + 1));
  return has.some((name) => names.includes(name));
}

async function readYaml(
  path: string,
  wrong: (text: string, remedy: string) => Problem,
): Promise<Readonly<Record<string, unknown>>> {
  let content: string;
  try {
    content = readFileText(path, FILE_MAX.small);
  } catch (error) {
    throw wrong(`TLS config file cannot be read: ${whyFailed(error)}`, `ls -l ${path}`);
  }
  // Loads the parser only when it is needed, because most servers have no such file.
  const { parseYaml } = await import('../../kube/manifests/yaml-document.ts');
  const { documents, problems } = parseYaml(content, path);
  if (problems.length > 0) throw problems[0]!;
  const value = documents[0]?.value ?? {};
  if (typeof value !== 'object' || Array.isArray(value))
    throw wrong('it is not a mapping', 'Begin with tls_server_config:');
  const config = value as Readonly<Record<string, unknown>>;
  if (typeof config['tls_server_config'] !== 'object' || config['tls_server_config'] === null)
    throw wrong(
      'TLS config is not present',
      'Begin with tls_server_config:, and put cert_file and key_file under it.',
    );
  return config;
}

/** Programs that validate DNSSEC, used to test servers. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readMessage, writeMessage, type Message } from '../../src/server/wire/message.ts';
import { FLAG, typeNumber } from '../../src/server/wire/iana.ts';
import { printed, start, type Child } from './child.ts';
import { UdpClient } from './zone-servers.ts';

const run = promisify(execFile);

/** A zone and the data of the DNSKEY record to trust: `257 3 13 …`. */
export interface TrustAnchor {
  readonly zone: string;
  readonly key: string;
}

/**
 * The result that `delv` prints for a name: `fully validated`, `negative response, fully validated`, or the failure.
 */
export async function delv(
  directory: string,
  port: number,
  { zone, key }: TrustAnchor,
  question: string,
): Promise<string> {
  const file = join(directory, `anchor-${zone}`);
  const [flags, protocol, algorithm, ...data] = key.split(' ');
  writeFileSync(
    file,
    `trust-anchors { ${zone} static-key ${flags} ${protocol} ${algorithm} "${data.join('')}"; };\n`,
  );
  const words = ['-a', file, `+root=${zone}`, '@127.0.0.1', '-p', String(port)];
  const done = await run('delv', [...words, ...question.split(' ')]).catch(
    (error: { readonly stdout: string; readonly stderr: string }) => error,
  );
  const told = `${done.stdout}\n${done.stderr}`.split('\n').filter((line) => line.startsWith(';'));
  return told.find((line) => line.includes('validated'))?.replace(/^; /, '') ?? told.join(' ');
}

/** Everything outside 127.0.0.0/8. */
const outside = [
  '0.0.0.0/2',
  '64.0.0.0/3',
  '96.0.0.0/4',
  '112.0.0.0/5',
  '120.0.0.0/6',
  '124.0.0.0/7',
  '126.0.0.0/8',
  '128.0.0.0/1',
] as const;

/** An Unbound that validates with these trust anchors and queries a single server for their zones. */
export class ValidatingUnbound {
  readonly #child: Child;
  readonly #client: UdpClient;
  #id = 1;

  private constructor(child: Child, port: number) {
    this.#child = child;
    this.#client = new UdpClient(port);
  }

  /** @param more additional lines for its `server` section */
  static async start(
    directory: string,
    port: number,
    server: number,
    anchors: readonly TrustAnchor[],
    more: readonly string[] = [],
  ): Promise<ValidatingUnbound> {
    const file = join(directory, `unbound-${port}.conf`);
    const lines = [
      'server:',
      ...[`  interface: 127.0.0.1@${port}`, '  num-threads: 1', '  do-daemonize: no'],
      ...['  username: ""', '  chroot: ""', `  directory: "${directory}"`, '  pidfile: ""'],
      ...['  use-syslog: no', '  verbosity: 1', '  val-log-level: 2', '  do-ip6: no'],
      ...['  do-not-query-localhost: no', '  module-config: "validator iterator"'],
      ...[
        '  access-control: 127.0.0.0/8 allow',
        '  trust-anchor-file: ""',
        '  qname-minimisation: no',
      ],
      ...['  local-zone: "10.in-addr.arpa." nodefault', '  local-zone: "test." nodefault'],
      // Do not query any server outside this machine, because each such lookup would wait until it times out.
      ...outside.map((net) => `  do-not-query-address: ${net}`),
      ...more.map((line) => `  ${line}`),
      ...anchors.map(({ zone, key }) => `  trust-anchor: "${zone} DNSKEY ${key}"`),
      ...anchors.flatMap(({ zone }) => [
        'stub-zone:',
        `  name: "${zone}"`,
        `  stub-addr: 127.0.0.1@${server}`,
      ]),
      ...['remote-control:', '  control-enable: no', ''],
    ];
    writeFileSync(file, lines.join('\n'));
    const child = start('unbound', ['/usr/sbin/unbound', '-d', '-c', file]);
    await printed(child, /start of service/, 20_000);
    return new ValidatingUnbound(child, port);
  }

  /** Sends `NAME TYPE` with DO. SERVFAIL means that validation failed, and AD that it succeeded. */
  async ask(question: string): Promise<Message> {
    const [name, type] = question.split(' ') as [string, string];
    this.#id = (this.#id % 65_535) + 1;
    const bytes = await this.#client.ask(
      writeMessage({
        id: this.#id,
        flags: FLAG.RD,
        rcode: 0,
        answer: [],
        authority: [],
        additional: [],
        question: [{ name, type: typeNumber(type)!, class: 1 }],
        edns: { udpSize: 4096, version: 0, dnssecOk: true, options: [] },
      }),
    );
    return readMessage(bytes);
  }

  /** Its messages about failed validations. */
  get log(): string {
    return this.#child.output();
  }

  async close(): Promise<void> {
    this.#client.close();
    await this.#child.stop();
  }
}

/** The part of an API server that commands use to reach the DNS pods in a cluster. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A pod in the API server's list. Its console directive listens on one of this machine's ports. */
export interface ListedPod {
  readonly name: string;
  readonly podIP: string;
  readonly port: number;
  readonly node?: string;
}

/** Lists pods and forwards `proxy` requests to them without `Authorization`, as the API server does. */
export class DnsPodsApi {
  pods: readonly ListedPod[] = [];
  /** Names of nodes, by the label selector that selects them. */
  nodes: Readonly<Record<string, readonly string[]>> = {};
  isForbidden = false;
  /** Failures of list requests, by resource (`nodes`). */
  failures: Readonly<Record<string, readonly [code: number, reason: string, message: string]>> = {};
  readonly #server: Server;
  readonly context: string;

  private constructor(context: string) {
    this.context = context;
    this.#server = createServer((asked, answer) => {
      const json = (status: number, body: object): void => {
        answer.writeHead(status, { 'content-type': 'application/json' });
        answer.end(JSON.stringify(body));
      };
      const refused = (code: number, reason: string, message = reason): void =>
        json(code, { kind: 'Status', status: 'Failure', code, reason, message });
      const [, name = '', path = ''] = /\/pods\/([\w-]+):9155\/proxy(\/.*)/.exec(asked.url!) ?? [];
      const { pathname, searchParams } = new URL(asked.url!, 'http://api');
      const failure = this.failures[pathname.split('/').at(-1)!];
      if (failure !== undefined) return refused(...failure);
      if (pathname === '/api/v1/nodes') {
        if (this.isForbidden) return refused(403, 'Forbidden');
        const names = this.nodes[searchParams.get('labelSelector')!] ?? [];
        const items = names.map((node) => ({ metadata: { name: node } }));
        return json(200, { kind: 'NodeList', items });
      }
      if (name === '') {
        const items = this.pods.map(({ name: own, podIP, node }) => ({
          metadata: { name: own },
          spec: { nodeName: node },
          status: { podIP },
        }));
        return json(200, { kind: 'PodList', items });
      }
      if (this.isForbidden) return refused(403, 'Forbidden');
      const pod = this.pods.find((each) => each.name === name);
      if (pod === undefined) return refused(404, 'NotFound');
      const { authorization: _, host: __, ...headers } = asked.headers;
      const passed = request({ port: pod.port, host: '127.0.0.1', path, headers }, (reply) => {
        answer.writeHead(reply.statusCode!, reply.headers);
        reply.pipe(answer);
        reply.on('close', () => answer.destroy());
      });
      passed.on('error', () => refused(503, 'ServiceUnavailable'));
      answer.on('close', () => passed.destroy());
      passed.end();
    });
  }

  static async start(t: TestContext, context: string): Promise<DnsPodsApi> {
    const api = new DnsPodsApi(context);
    await api.listen(0);
    t.after(() => api.close());
    return api;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Writes a kubeconfig with a context for each API server. */
export function kubeconfigOf(t: TestContext, apis: readonly DnsPodsApi[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-kubeconfig-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'kubeconfig');
  const clusters = apis.map(
    ({ context, port }) => `{name: ${context}, cluster: {server: "http://127.0.0.1:${port}"}}`,
  );
  const contexts = apis.map(({ context }) => `{name: ${context}, context: {cluster: ${context}}}`);
  writeFileSync(
    path,
    `apiVersion: v1
kind: Config
current-context: ${apis[0]!.context}
clusters: [${clusters.join(', ')}]
contexts: [${contexts.join(', ')}]
`,
  );
  return path;
}

/**
 * The lab's servers in this process, except DNS servers in pods: the internet, the API server, and pods that answer
 * HTTP.
 */
import { createServer, type Server } from 'node:http';
import { inNetworkNamespace } from '../../server/runtime/network-namespace.ts';
import type { ImpliedPod } from '../../server/kube/manifests/pods.ts';

export function listenIn(namespace: string, server: Server, port: number): Promise<void> {
  return inNetworkNamespace(
    namespace,
    () =>
      new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, resolve);
      }),
  );
}

/** Answers HTTP in a pod with the pod's name and address, on each of its containers' TCP ports. */
export async function serveHttp(namespace: string, pod: ImpliedPod): Promise<readonly Server[]> {
  const ports = new Set(
    pod.ports
      .filter(({ port, protocol }) => protocol === 'TCP' && port > 0)
      .map(({ port }) => port),
  );
  return Promise.all(
    [...ports].map(async (port) => {
      const server = createServer((_request, reply) => {
        reply.setHeader('connection', 'close');
        reply.end(`${pod.name} ${pod.ips[0]}\n`);
      });
      await listenIn(namespace, server, port);
      return server;
    }),
  );
}

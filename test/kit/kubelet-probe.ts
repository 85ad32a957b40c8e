/** A readiness probe like the kubelet's (pkg/probe/http and pkg/kubelet/prober in Kubernetes 1.36). */
import { request } from 'node:http';

/** kubelet's `maxProbeRetries`. */
const TRIES = 3;
/** In milliseconds. The kubelet waits a second; this is longer, so that no test depends on the machine's speed. */
const TIMEOUT_MS = 20_000;

/** `errored` means that every body was cut short. The kubelet ignores that result. */
export type Probed = 'success' | 'failure' | 'errored';

/** Probes once. The request is repeated only if the body cannot be read. */
export async function kubeletProbe(port: number, path = '/ready'): Promise<Probed> {
  for (let tries = TRIES; tries > 0; tries--) {
    const found = await tryOnce(port, path);
    if (found !== 'errored') return found;
  }
  return 'errored';
}

function tryOnce(port: number, path: string): Promise<Probed> {
  return new Promise((resolve) => {
    const headers = { 'user-agent': 'kube-probe/1.36', connection: 'close', accept: '*/*' };
    const asked = request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      const { statusCode = 0 } = response;
      response.resume();
      response.on('end', () => resolve(statusCode < 400 ? 'success' : 'failure'));
      response.on('error', () => resolve('errored'));
    });
    const timer = setTimeout(() => asked.destroy(), TIMEOUT_MS);
    asked.on('error', () => resolve('failure'));
    asked.on('close', () => clearTimeout(timer));
    asked.end();
  });
}

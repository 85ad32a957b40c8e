/** Connects to a pod's `console` directive through the API server. */
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { TAP_PATH } from '../../../server/wire/dnstap.ts';
import { podProxyPath, type DnsPodChoice } from '../dns-pods.ts';
import { refusals } from './direct-stream.ts';
import { SILENT_MS, type StreamOpener } from './server-stream.ts';

/** Connects to this pod. The token needs a separate header, because the API server consumes `Authorization`. */
export function podStream(
  client: ApiClient,
  choice: DnsPodChoice,
  pod: string,
  token: () => string,
): StreamOpener {
  return ({ bytes, ended }) => {
    const closed = new AbortController();
    let restMs = 0;
    const asked = client.stream({
      path: podProxyPath(choice, pod, TAP_PATH),
      query: {},
      headers: { 'ndots-console': token(), 'accept-encoding': 'gzip' },
      into: { push: (piece) => void (restMs = bytes(piece)) },
      restMs: () => restMs,
      task: `read ${pod}`,
      answerMs: SILENT_MS,
      silenceMs: () => 2 * SILENT_MS,
      watch: true,
      signal: closed.signal,
    });
    asked.then(
      () => ended('the server ended the stream'),
      (error: unknown) => {
        if (closed.signal.aborted) return;
        if (!(error instanceof ApiFailure)) throw error;
        ended(refusalOf(error, choice));
      },
    );
    return () => closed.abort();
  };
}

/** Why the pod does not provide a stream, as a message. */
function refusalOf(
  { kind, status, reason, message }: ApiFailure,
  { namespace, port }: DnsPodChoice,
): string {
  // The API server passes on the pod's own status, which has no API reason.
  const isPods = reason === '';
  const refused = isPods ? refusals[status] : undefined;
  if (refused !== undefined) return refused;
  if (kind === 'forbidden')
    return `it is forbidden (kubectl auth can-i get pods/proxy -n ${namespace}): ${message}`;
  if (status === 404 && !isPods) return 'the pod is gone';
  if (status !== 0)
    return `no console directive answers on port ${port} of the pod (HTTP ${status}): its Corefile needs console :${port} { token_file FILE }`;
  return message;
}

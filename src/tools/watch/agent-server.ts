/** A node agent's HTTP server: the packet stream, metrics and liveness. */
import { createServer, type Server } from 'node:http';
import { systemClock } from '../../server/base/clock.ts';
import { HttpAdmission } from '../../server/base/http-admission.ts';
import { answerText } from '../../server/base/http-answer.ts';
import { endHttp, listenHttp } from '../../server/base/http-listening.ts';
import { boundConnections } from '../../server/base/idle-connections.ts';
import { PageSender } from '../../server/base/page-sender.ts';
import type { StreamAccess } from '../../server/base/stream-readers.ts';
import { printExposition } from '../../server/metrics/exposition.ts';
import { contentTypes } from '../../server/metrics/formats.ts';
import { groupSamples, type MetricSample } from '../../server/metrics/sample.ts';
import { TAP_PATH } from '../../server/wire/dnstap.ts';
import type { PacketStream } from './packet-stream.ts';

/** The maximum number of connections, from readers, scrapers and probes. */
const CONNECTIONS_MAX = 64;

/** Serves one stream. */
export class AgentServer {
  readonly #stream: PacketStream;
  readonly #server: Server;

  constructor(stream: PacketStream, access: StreamAccess) {
    this.#stream = stream;
    this.#server = createServer({ requestTimeout: 5000, headersTimeout: 5000 });
    boundConnections(this.#server, CONNECTIONS_MAX);
    const pages = new PageSender(systemClock);
    const admission = new HttpAdmission();
    this.#server.on('request', (request, response) => {
      const path = request.url?.split('?')[0] ?? '/';
      // A stream stays open, so it must not take up a slot that others need.
      if (path === TAP_PATH) return stream.serve(request, response, access);
      admission.take({
        request,
        response,
        probe: path === '/healthz',
        answer: () => {
          if (path === '/healthz') return answerText(response, 200, 'OK');
          if (path !== '/metrics')
            return answerText(response, 404, `${TAP_PATH}, /metrics, /healthz`);
          return pages.send(request, response, path, contentTypes.text, () =>
            printExposition(groupSamples(samplesOf(stream)).values(), 'text'),
          );
        },
      });
    });
  }

  /** @returns the port @throws the system error if it cannot listen */
  listen(host: string, port: number): Promise<number> {
    return listenHttp(this.#server, host, port);
  }

  close(): Promise<void> {
    this.#stream.close();
    return endHttp(this.#server, 0);
  }
}

function samplesOf(stream: PacketStream): readonly MetricSample[] {
  const sample = (
    name: string,
    kind: 'counter' | 'gauge',
    value: number,
    help: string,
  ): MetricSample => ({ name: `ndots_watch_${name}`, help, kind, labels: {}, value });
  return [
    sample('readers', 'gauge', stream.readers, 'Readers of this node’s packets.'),
    sample(
      'packets_total',
      'counter',
      stream.packets,
      'Packets captured while at least one reader was connected.',
    ),
    sample('sent_total', 'counter', stream.sent, 'Packets sent to readers.'),
    sample('left_out_total', 'counter', stream.missed, 'Packets that a slow reader missed.'),
    sample(
      'dropped_total',
      'counter',
      stream.dropped,
      'Packets that arrived faster than they were read.',
    ),
  ];
}

/** The node agent's HTTP server, which provides the packet stream, metrics and liveness. */
import { answerText } from '../../server/base/http-answer.ts';
import { ScrapedServer } from '../../server/base/scraped-server.ts';
import type { StreamAccess } from '../../server/base/stream-readers.ts';
import { printExposition } from '../../server/metrics/exposition.ts';
import { contentTypes } from '../../server/metrics/formats.ts';
import { groupSamples, type MetricSample } from '../../server/metrics/sample.ts';
import { TAP_PATH } from '../../server/wire/dnstap.ts';
import type { PacketStream } from './packet-stream.ts';

/** Milliseconds for readers to receive the last packets at the end. */
const LAST_MS = 1000;

export class AgentServer {
  readonly #stream: PacketStream;
  readonly #server: ScrapedServer;

  constructor(stream: PacketStream, access: StreamAccess) {
    this.#stream = stream;
    this.#server = new ScrapedServer({
      probes: ['/healthz'],
      endless: { [TAP_PATH]: (request, response) => stream.serve(request, response, access) },
      answer(path, request, response, pages) {
        if (path === '/healthz') return answerText(response, 200, 'OK');
        if (path !== '/metrics')
          return answerText(response, 404, `${TAP_PATH}, /metrics, /healthz`);
        return pages.send(request, response, path, contentTypes.text, () =>
          printExposition(groupSamples(samplesOf(stream)).values(), 'text'),
        );
      },
    });
  }

  /**
   * @returns the port
   * @throws the system's error if it cannot listen
   */
  listen(host: string, port: number): Promise<number> {
    return this.#server.listen(host, port);
  }

  close(): Promise<void> {
    this.#stream.close();
    return this.#server.close(LAST_MS);
  }
}

function samplesOf(stream: PacketStream): readonly MetricSample[] {
  const samples = [
    ['readers', 'gauge', stream.readers, 'Readers of this node’s packets.'],
    ['packets_total', 'counter', stream.packets, 'Packets captured while a reader was connected.'],
    ['sent_total', 'counter', stream.sent, 'Packets sent to readers.'],
    ['left_out_total', 'counter', stream.missed, 'Packets that a slow reader missed.'],
    [
      'dropped_total',
      'counter',
      stream.dropped,
      'Packets that arrived faster than they were read.',
    ],
  ] as const;
  return samples.map(([name, kind, value, help]) => ({
    ...{ name: `ndots_watch_${name}`, help, kind, labels: {}, value },
  }));
}

/**
 * The HTTP server in a program that runs alongside DNS. It serves probes, pages for scrapers, and at most one endless
 * reply per connection.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { builtins } from './builtins.ts';
import { systemClock } from './clock.ts';
import { HttpAdmission } from './http-admission.ts';
import { endHttp, listenHttp } from './http-listening.ts';
import { boundConnections } from './idle-connections.ts';
import { PageSender } from './page-sender.ts';

/** The maximum number of connections. Each scraper and each reader keeps one open. */
const CONNECTIONS_MAX = 64;
/** Timeout for a request to arrive, in milliseconds. */
const REQUEST_MS = 5000;

export interface ScrapedPaths {
  /** Paths that are answered first, and never refused because of load. */
  readonly probes: readonly string[];
  /** Paths whose replies do not end. They are served at once, without taking a turn. */
  readonly endless?: Readonly<
    Record<string, (request: IncomingMessage, response: ServerResponse) => void>
  >;
  /** Answers all other paths. */
  answer(path: string, request: IncomingMessage, response: ServerResponse, pages: PageSender): void;
}

export class ScrapedServer {
  readonly #server: Server = builtins
    .http()
    .createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS });

  constructor({ probes, endless = {}, answer }: ScrapedPaths) {
    boundConnections(this.#server, CONNECTIONS_MAX);
    const pages = new PageSender(systemClock);
    const admission = new HttpAdmission();
    this.#server.on('request', (request, response) => {
      // A reply behind one that does not end would never be sent, and the runtime would never close it.
      if (response.socket === null) return void request.socket.destroy();
      const path = request.url?.split('?')[0] ?? '/';
      const stream = Object.hasOwn(endless, path) ? endless[path] : undefined;
      if (stream !== undefined) return stream(request, response);
      admission.take({
        request,
        response,
        probe: probes.includes(path),
        answer: () => answer(path, request, response, pages),
      });
    });
  }

  /** @returns the port @throws the system error if it cannot listen */
  listen(host: string, port: number, reusePort = false): Promise<number> {
    return listenHttp(this.#server, host, port, reusePort);
  }

  /** Does not keep the process alive. */
  unref(): void {
    this.#server.unref();
  }

  /** @param graceMs for replies in progress */
  close(graceMs = 0): Promise<void> {
    return endHttp(this.#server, graceMs);
  }
}

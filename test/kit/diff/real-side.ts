/** Runs CoreDNS with a Corefile and queries it the way `ndots diff` queries its sides. */
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { connect, createServer, type Server } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServedConfiguration } from '../../../src/tools/diff/compare.ts';
import type {
  PrintedRecord,
  QueryOutcome,
  DiffQuestion,
} from '../../../src/tools/diff/question.ts';
import { scriptedReply } from '../../../src/tools/diff/script.ts';
import { rcodeName, typeName } from '../../../src/server/wire/iana.ts';
import { readMessage, writeMessage, type DnsRecord } from '../../../src/server/wire/message.ts';
import { flagNames, printData } from '../../../src/server/wire/print.ts';
import { start, type Child } from '../child.ts';

/** Replaces upstreams, over UDP and TCP on port 53 of each address, and records which addresses were queried. */
export class ScriptedUpstreams {
  readonly asked: string[] = [];
  readonly #close: (() => void)[] = [];

  static async start(addresses: readonly string[]): Promise<ScriptedUpstreams> {
    const made = new ScriptedUpstreams();
    for (const address of addresses) {
      const udp = createSocket('udp4');
      udp.on('message', (bytes, from) => {
        const reply = made.#reply(bytes, address, true);
        if (reply !== null) udp.send(reply, from.port, from.address);
      });
      await new Promise<void>((resolve) => udp.bind(53, address, resolve));
      const tcp: Server = createServer((socket) => {
        let held = Buffer.alloc(0);
        socket.on('data', (chunk: Buffer) => {
          held = Buffer.concat([held, chunk]);
          while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
            const size = held.readUInt16BE(0);
            const reply = made.#reply(held.subarray(2, 2 + size), address, false);
            held = held.subarray(2 + size);
            if (reply === null) continue;
            const length = Buffer.alloc(2);
            length.writeUInt16BE(reply.length);
            socket.write(Buffer.concat([length, reply]));
          }
        });
        socket.on('error', () => {});
      });
      await new Promise<void>((resolve) => tcp.listen(53, address, resolve));
      made.#close.push(() => {
        udp.close();
        tcp.close();
      });
    }
    return made;
  }

  stop(): void {
    for (const close of this.#close) close();
  }

  #reply(bytes: Uint8Array, address: string, isUdp: boolean): Uint8Array | null {
    const { id, question } = readMessage(bytes);
    const [asked] = question;
    if (asked === undefined) return null;
    // Upstream probes query the root's name servers.
    if (asked.name !== '.' || asked.type !== 2) this.asked.push(address);
    return scriptedReply({ id, ...asked }, isUdp ? 1232 : 65_535);
  }
}

/** The client addresses used so far, and whether this machine has them. */
const given = new Map<string, boolean>();

/** Adds the address to this machine for as long as this process runs. */
function giveAddress(address: string): void {
  if (given.has(address)) return;
  const { status } = spawnSync('ip', ['addr', 'add', `${address}/32`, 'dev', 'lo']);
  given.set(address, status === 0);
}

process.on('exit', () => {
  for (const [address, isAdded] of given)
    if (isAdded) spawnSync('ip', ['addr', 'del', `${address}/32`, 'dev', 'lo']);
});

/** A single CoreDNS that serves many Corefiles, each on its own ports. */
export class RealServer {
  readonly #child: Child;
  readonly #directory: string;

  private constructor(child: Child, directory: string) {
    this.#child = child;
    this.#directory = directory;
  }

  /** @returns null if it refuses one of the Corefiles or is not serving within a minute */
  static async start(program: string, texts: readonly string[]): Promise<RealServer | null> {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-coredns-'));
    const file = join(directory, 'Corefile');
    writeFileSync(file, texts.join('\n'));
    const child = start('coredns', [program, '-conf', file]);
    const server = new RealServer(child, directory);
    let ended = false;
    void child.exitCode.then(() => (ended = true));
    for (let tries = 0; tries < 1200 && !ended; tries++) {
      // The last line that it prints at startup.
      if (/^CoreDNS-[^\n]*\n[^\n]+\n/m.test(child.output())) return server;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await server.stop();
    return null;
  }

  async stop(): Promise<void> {
    await this.#child.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export class RealSide implements ServedConfiguration {
  readonly left: readonly string[] = [];
  readonly #port: number;
  readonly #upstreams: ScriptedUpstreams;
  readonly #groups: ReadonlyMap<string, readonly string[]>;
  /** The TTLs in the first answers. Those in a second reply may differ by a second. */
  readonly #ttls = new Map<string, number>();

  /** @param groups the upstreams in its forward lines, which are grouped by address */
  constructor(
    port: number,
    upstreams: ScriptedUpstreams,
    groups: ReadonlyMap<string, readonly string[]>,
  ) {
    this.#port = port;
    this.#upstreams = upstreams;
    this.#groups = groups;
  }

  pass(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  silence(): void {
    // Only the fast rounds run in real time.
  }

  async ask(question: DiffQuestion): Promise<QueryOutcome> {
    const { name, type, client, dnssecOk, udpSize } = question;
    giveAddress(client);
    this.#upstreams.asked.length = 0;
    const bytes = writeMessage({
      id: 4711,
      flags: 0x0100,
      rcode: 0,
      question: [{ name, type, class: question.class }],
      answer: [],
      authority: [],
      additional: [],
      edns: udpSize === 0 ? null : { udpSize, version: 0, dnssecOk, options: [] },
    });
    const reply =
      question.proto === 'udp'
        ? await this.#overUdp(bytes, client)
        : await this.#overTcp(bytes, client);
    const asked = [...new Set(this.#upstreams.asked)];
    const upstreams = [
      ...new Set(asked.flatMap((host) => this.#groups.get(host) ?? [host])),
    ].toSorted();
    const common = { upstreams, asked: asked.length, block: '', plugin: '' };
    if (reply === null)
      return { ...common, rcode: 'silence', flags: [], answer: [], authority: [], additional: [] };
    const message = readMessage(reply);
    const key = Object.values(question).join(' ');
    const records = (section: readonly DnsRecord[]): readonly PrintedRecord[] =>
      section.map((record) => {
        const printed = printData(record.type, record.data);
        // A cluster zone's serial is the time of its last change, as seen by each server.
        const data = record.type === 6 ? printed.replace(/ \d+ /, ' SERIAL ') : printed;
        const own = `${key} ${record.name} ${record.type} ${data}`;
        const first = this.#ttls.get(own) ?? record.ttl;
        this.#ttls.set(own, first);
        // Up to one second may have passed between the questions in a round. A larger difference is the entry's age.
        const aged = first - record.ttl;
        const ttl = aged < 0 || aged > 60 ? record.ttl : aged <= 1 ? first : first - 2;
        return { name: record.name, type: typeName(record.type), ttl, data };
      });
    return {
      ...common,
      rcode: rcodeName(message.rcode),
      flags: flagNames(message.flags).filter((flag) => ['aa', 'tc', 'ra', 'ad'].includes(flag)),
      answer: records(message.answer),
      authority: records(message.authority),
      additional: records(message.additional),
    };
  }

  #overUdp(bytes: Uint8Array, client: string): Promise<Uint8Array | null> {
    return new Promise((resolve) => {
      const socket = createSocket('udp4');
      const finish = (reply: Uint8Array | null): void => {
        clearTimeout(timer);
        socket.close();
        resolve(reply);
      };
      const timer = setTimeout(() => finish(null), 1000);
      socket.on('message', finish);
      socket.on('error', () => finish(null));
      socket.bind(0, client, () => socket.send(bytes, this.#port, '127.0.0.1'));
    });
  }

  #overTcp(bytes: Uint8Array, client: string): Promise<Uint8Array | null> {
    return new Promise((resolve) => {
      const socket = connect({ port: this.#port, host: '127.0.0.1', localAddress: client });
      let held = Buffer.alloc(0);
      const finish = (reply: Uint8Array | null): void => {
        clearTimeout(timer);
        socket.destroy();
        resolve(reply);
      };
      const timer = setTimeout(() => finish(null), 3000);
      socket.on('connect', () => {
        const length = Buffer.alloc(2);
        length.writeUInt16BE(bytes.length);
        socket.write(Buffer.concat([length, bytes]));
      });
      socket.on('data', (chunk: Buffer) => {
        held = Buffer.concat([held, chunk]);
        if (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) finish(held.subarray(2));
      });
      socket.on('error', () => finish(null));
      socket.on('close', () => finish(null));
    });
  }
}

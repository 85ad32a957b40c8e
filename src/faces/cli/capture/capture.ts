/** `ndots capture`: shows queries and replies from an interface, captures, dnstap streams or logs. */
import { ClientList } from '../../../tools/doctor/observe/client-list.ts';
import {
  isLost,
  unfinishedText,
  type SeenExchange,
} from '../../../tools/capture/pair/seen-exchange.ts';
import { afterwards, filterOf, ofClients, type Filter } from '../../../tools/capture/filter.ts';
import { emptyFrame, LINK, type Frame } from '../../../tools/capture/read/packets/frame.ts';
import { printRemark } from '../../../tools/capture/read/packets/remarks.ts';
import { Reading, usualPorts, type ReadingEvents } from '../../../tools/capture/read/reading.ts';
import type { AttributedEvents, Attribution } from '../../../tools/capture/process/attribution.ts';
import { ProcessStory } from '../../../tools/capture/process/process-story.ts';
import { Redaction } from '../../../tools/capture/redaction.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import { attributionLine } from './asker-rows.ts';
import { captureJoin } from './capture-join.ts';
import {
  captureDnstap,
  capturePackets,
  remarkOnLosses,
  whileGone,
  type LiveCapture,
} from './capture-live.ts';
import { addressNamingOf, addressOwners, namingOf, type AddressNaming } from './capture-names.ts';
import { parseCaptureOptions, type CaptureOptions } from './capture-options.ts';
import { captureOutputs, exchangeTexts, type CaptureOutputs } from './capture-output.ts';
import { openAttribution } from './capture-process.ts';
import { clientRows } from './client-rows.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { readLean } from './lean-reading.ts';
import { count } from '../../../server/base/counted.ts';
import { paintFor } from '../page.ts';
import { readingProgress } from './reading-progress.ts';
import { untilAborted, untilSignal } from '../until-signal.ts';
import { openGiven } from '../named-capture.ts';
import { comesOnce } from '../named-file.ts';
import { tellProblems } from '../problem-text.ts';

export const capture: Command = {
  name: 'capture',
  async run(words, io) {
    const options = parseCaptureOptions(words);
    const owners = await addressOwners(options, io, (text) => io.err(`ndots capture: ${text}\n`));
    const filter = filterOf(options.filters, owners);
    const redaction = options.redactKey === null ? null : new Redaction(options.redactKey);
    const naming = namingOf(owners, redaction);
    const paint = paintFor(wantsColour(options, io));
    const ports = options.ports ?? usualPorts;
    if (options.action === 'join') {
      const remarks = (reading: Reading): void => sayRemarks(reading, io);
      const texts = exchangeTexts({ naming, redaction, paint });
      return captureJoin(options, { io, paint, texts, filter, ports, remarks });
    }
    const asPassed =
      redaction === null &&
      options.dnstap === null &&
      !options.process &&
      !options.filters.some(({ word }) => afterwards.has(word));
    const addressNaming = addressNamingOf(owners, redaction);
    const outputs = captureOutputs(options, {
      io,
      paint,
      naming,
      addressNaming,
      redaction,
      asPassed,
      inOrder: options.files.length > 0 && !options.files.some(comesOnce),
    });
    const clients = options.filters.filter(({ word }) => ofClients.has(word));
    const isTheirs = filterOf(clients, owners);
    return new CaptureRun(options, io, { filter, isTheirs }, outputs, addressNaming, ports).run();
  },
};

class CaptureRun {
  readonly #options: CaptureOptions;
  readonly #io: Io;
  readonly #filter: Filter;
  /** Matches frames from clients that may be selected. */
  readonly #isTheirs: Filter;
  readonly #clients = new ClientList();
  readonly #outputs: CaptureOutputs;
  readonly #naming: AddressNaming;
  readonly #ports: readonly number[];
  readonly #reading: Reading;
  readonly #stop = new AbortController();
  #shown = 0;
  /** Printed queries without a reply. */
  #lostShown = 0;
  #failed = 0;
  /** Finds a client's process; null without --process. */
  #attribution: Attribution | null = null;
  /** Receives exchanges and lookups with their processes; null without --process. */
  #attributed: AttributedEvents | null = null;
  #story: ProcessStory | null = null;
  /** Output errors, which end the capture. */
  readonly #unwritten: unknown[] = [];
  /** True if the current frame is selected for packet output. */
  #keep = false;
  /** True after the frame that reached the -c limit. Later frames are ignored. */
  #isPast = false;

  constructor(
    options: CaptureOptions,
    io: Io,
    { filter, isTheirs }: { readonly filter: Filter; readonly isTheirs: Filter },
    outputs: CaptureOutputs,
    naming: AddressNaming,
    ports: readonly number[],
  ) {
    this.#options = options;
    this.#io = io;
    this.#filter = filter;
    this.#isTheirs = isTheirs;
    this.#outputs = outputs;
    this.#naming = naming;
    this.#ports = ports;
    this.#reading = new Reading(this.#events(), ports);
  }

  async run(): Promise<number> {
    const { forMs, quiet } = this.#options;
    // The first Ctrl-C ends the capture, and a second one ends the program.
    const asked = untilSignal();
    asked.addEventListener('abort', () => this.#stop.abort(), { once: true });
    const timer = forMs === null ? null : setTimeout(() => this.#stop.abort(), forMs);
    const live = this.#options.device !== null || this.#options.dnstap !== null;
    const atOnce = readLean();
    try {
      if (live) await this.#live();
      else await this.#files();
    } finally {
      atOnce();
      if (timer !== null) clearTimeout(timer);
    }
    this.#reading.end();
    this.#attribution?.settle();
    this.#story?.end();
    this.#attribution?.close();
    const { clients } = this.#options;
    if (clients.in === 'output')
      this.#write(() => this.#outputs.clients(this.#clients.listed(clients.most)));
    this.#write(() => this.#outputs.close());
    if (this.#unwritten.length > 0) throw this.#unwritten[0];
    if (!quiet) this.#summary();
    if (clients.in === 'summary') this.#listClients();
    if (this.#failed > 0 && this.#failed === this.#options.files.length) return EXIT.failed;
    if (asked.aborted && !live) return EXIT.interrupted;
    if (!live && this.#isUnread) return EXIT.failed;
    return this.#shown > 0 ? EXIT.ok : EXIT.no;
  }

  /** True if nothing could be read and the reason has already been reported. */
  get #isUnread(): boolean {
    const { remarks, totals } = this.#reading;
    return (
      remarks.list.length > 0 && this.#framesRead === 0 && totals.messages + totals.exchanges === 0
    );
  }

  /** Packets, without those of unknown link types. */
  get #framesRead(): number {
    const { remarks, totals } = this.#reading;
    return remarks.list
      .filter(({ text }) => text.startsWith('packets with link type'))
      .reduce((frames, { count: unread }) => frames - unread, totals.frames);
  }

  #events(): ReadingEvents {
    const { count, output, filters } = this.#options;
    const listsClients = this.#options.clients.most > 0;
    const frame = this.#outputs.frame;
    const events: ReadingEvents = {
      ended: (exchange) => {
        const takes = this.#takes(exchange);
        // With -o flow, -c counts lookups rather than exchanges.
        const counts = takes && !(output === 'flow' && count !== null);
        if (listsClients && this.#isTheirs(exchange)) this.#clients.exchange(exchange, counts);
        if (!takes) return;
        this.#write(() => this.#outputs.exchange(exchange));
        if (exchange.ending === 'answered') this.#keep = true;
        if (output !== 'flow') this.#count(isLost(exchange) ? 1 : 0);
      },
    };
    if (output === 'flow' || listsClients)
      events.lookup = (lookup) => {
        const isWanted = lookup.exchanges.some(this.#filter);
        const isShown = output === 'flow' && isWanted && !this.#isEnough;
        if (isShown && count !== null)
          for (const each of lookup.exchanges) this.#clients.exchange(each, true);
        this.#clients.lookup(lookup, output === 'flow' ? isShown : isWanted);
        if (!isShown) return;
        if (this.#story === null) this.#write(() => this.#outputs.lookup(lookup));
        else this.#story.hold(lookup);
        this.#count(lookup.exchanges.filter(isLost).length);
      };
    if (frame !== null) {
      events.frame = (each) => this.#frame(each);
      events.begun = (exchange) => (this.#keep ||= this.#filter(exchange));
      if (filters.length === 0) {
        const keep = (): void => void (this.#keep = true);
        Object.assign(events, { message: keep, path: keep, part: keep });
      }
    }
    if (!this.#options.process) return events;
    this.#attributed = {
      ended: (exchange) => events.ended?.(exchange),
      lookup: (lookup) => events.lookup?.(lookup),
    };
    return {
      ...events,
      begun: (exchange) => this.#attribution?.begun(exchange),
      ended: (exchange) => this.#attribution?.ended(exchange),
      ...(events.lookup !== undefined && {
        lookup: (lookup) => this.#attribution?.lookup(lookup),
      }),
    };
  }

  #takes(exchange: SeenExchange): boolean {
    return !this.#isEnough && this.#filter(exchange);
  }

  get #isEnough(): boolean {
    return this.#options.count !== null && this.#shown >= this.#options.count;
  }

  /** Counts a printed exchange or lookup. */
  #count(lost: number): void {
    this.#shown++;
    this.#lostShown += lost;
    if (this.#isEnough) this.#stop.abort();
  }

  #flush(): void {
    this.#write(() => this.#outputs.flush());
  }

  /** Timers and sockets call this too, and nothing catches exceptions there. */
  #write(action: () => void): void {
    if (this.#unwritten.length > 0) return;
    try {
      action();
    } catch (error) {
      this.#unwritten.push(error);
      this.#stop.abort();
    }
  }

  #frame(frame: Frame): void {
    if (this.#keep && !this.#isPast) this.#write(() => this.#outputs.frame!(frame));
    this.#keep = false;
    this.#isPast = this.#isEnough;
  }

  async #files(): Promise<void> {
    for (const path of this.#options.files) {
      if (this.#stop.signal.aborted) return;
      try {
        await this.#file(path);
      } catch (error) {
        const problems = problemsIn(error);
        if (problems === null) throw error;
        this.#failed++;
        tellProblems('capture', problems, this.#io);
      }
    }
  }

  async #file(path: string): Promise<void> {
    const { remarks } = this.#reading;
    const given = await openGiven(path, remarks, this.#stop.signal);
    const input = { ...given, chunks: this.#asTaken(given.chunks) };
    const close = (): void => input.close();
    this.#stop.signal.addEventListener('abort', close);
    const { quiet } = this.#options;
    const progress = quiet ? null : readingProgress(this.#io, input, this.#reading);
    const before = this.#reading.totals.exchanges;
    // Shows data from a pipe as it arrives, without waiting for a full buffer.
    const flush = input.size === null ? setInterval(() => this.#flush(), 200) : null;
    try {
      await this.#reading.read(input, () => this.#stop.signal.aborted);
    } finally {
      if (progress !== null) clearInterval(progress);
      if (flush !== null) clearInterval(flush);
      this.#stop.signal.removeEventListener('abort', close);
      input.close();
    }
    const nothing = this.#reading.totals.exchanges === before;
    if (input.format === 'text' && nothing && !this.#stop.signal.aborted) {
      this.#failed++;
      remarks.add(`${input.name} is not a capture, dnstap stream or query log`);
    } else if (input.format === 'empty' && !this.#stop.signal.aborted) this.#failed++;
  }

  /** Waits for the output to drain before reading on, because a slow pager would otherwise fill up memory. */
  async *#asTaken(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of chunks) {
      yield chunk;
      await this.#io.taken?.(this.#stop.signal);
    }
  }

  async #live(): Promise<void> {
    const { device, netns, dnstap, quiet } = this.#options;
    const frame = { ...emptyFrame(), link: LINK.RAW };
    const captures: LiveCapture[] = [];
    if (this.#options.process) this.#openProcesses();
    const opened = this.#story !== null;
    if (device !== null)
      captures.push(
        capturePackets(
          { device, netns, ports: this.#ports, opened },
          (bytes, start, end, timeMs, port) => {
            this.#attribution?.ready();
            if (this.#story?.take(bytes, start, end, timeMs) === true) return;
            this.#reading.takeNetwork(bytes, start, end, timeMs, port);
            if (this.#outputs.frame === null) return;
            Object.assign(frame, { bytes, start, end, timeMs, port, wireLength: end - start });
            this.#frame(frame);
          },
          (why) => why === null || this.#reading.remarks.add(whileGone(why)),
        ),
      );
    if (dnstap !== null) captures.push(await captureDnstap(dnstap, this.#reading));
    if (!quiet)
      this.#io.err(`ndots capture: ${captures.map(({ name }) => name).join(', ')}; Ctrl-C ends\n`);
    const flush = setInterval(() => {
      this.#attribution?.refresh();
      this.#story?.tell();
      this.#flush();
    }, 200);
    await untilAborted(this.#stop.signal);
    clearInterval(flush);
    for (const each of captures) {
      each.stop();
      remarkOnLosses(each, this.#reading);
    }
  }

  #openProcesses(): void {
    const { netns, bpf, output } = this.#options;
    const note = (text: string): void => this.#io.err(`ndots capture: ${text}\n`);
    const isUpstreamShown = output === 'flow' || output === 'json';
    const choice = { netns, ports: this.#ports, bpf, isUpstreamShown };
    this.#attribution = openAttribution(choice, this.#attributed!, note);
    if (output === 'flow')
      this.#story = new ProcessStory(this.#attribution, this.#ports, (lookup, next) =>
        this.#write(() => this.#outputs.lookup(lookup, next)),
      );
  }

  #listClients(): void {
    const found = this.#clients.listed(this.#options.clients.most);
    if (found.listed.length === 0) return;
    const page = { columns: this.#io.columns, paint: paintFor(false) };
    this.#io.err(`\n${clientRows(found, this.#naming, page).join('\n')}\n`);
  }

  #summary(): void {
    const { totals } = this.#reading;
    const { count: most, output } = this.#options;
    if (this.#isEnough) {
      const shown =
        output === 'flow'
          ? count(this.#shown, 'lookup', 'lookups')
          : count(this.#shown, 'query', 'queries');
      this.#io.err(
        `${shown}, ${this.#lostShown} without reply; reading stopped because of -c ${most}\n`,
      );
      return sayRemarks(this.#reading, this.#io);
    }
    const of = this.#options.output === 'flow' ? totals.lookups : totals.exchanges;
    const parts = [
      ...(totals.frames > 0 ? [count(totals.frames, 'packet', 'packets')] : []),
      count(totals.messages > 0 ? totals.messages : totals.exchanges, 'message', 'messages'),
      count(totals.exchanges - totals.unfinished, 'query', 'queries'),
      count(totals.lookups, 'lookup', 'lookups'),
      `${totals.lost} without reply${unfinishedText(totals.unfinished)}`,
      ...(totals.copies > 0 ? [count(totals.copies, 'copy of a packet', 'copies of packets')] : []),
      ...(totals.unasked > 0
        ? [
            count(
              totals.unasked,
              'reply without a captured query',
              'replies without a captured query',
            ),
          ]
        : []),
      ...(totals.encrypted > 0
        ? [count(totals.encrypted, 'encrypted packet', 'encrypted packets')]
        : []),
      ...(this.#shown !== of ? [`${this.#shown} shown`] : []),
    ];
    // An unreadable input was already reported.
    const nothing = totals.frames + totals.messages + totals.exchanges === 0;
    if (!nothing || this.#failed === 0) this.#io.err(`${parts.join(', ')}\n`);
    if (this.#attribution !== null) this.#io.err(`${attributionLine(this.#attribution.counts)}\n`);
    if (this.#framesRead > 0 && totals.messages + totals.encrypted === 0)
      this.#io.err(
        'ndots capture: no packet uses a DNS port; --port selects ports other than 53 and 5353\n',
      );
    sayRemarks(this.#reading, this.#io);
  }
}

function sayRemarks({ remarks }: Reading, io: Io): void {
  for (const remark of remarks.list) io.err(`ndots capture: ${printRemark(remark)}\n`);
}

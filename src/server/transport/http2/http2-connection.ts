/** The server side of a DNS over HTTP/2 connection. */
import type { Socket } from 'node:net';

import { ClientConnection, written } from '../stream/client-connection.ts';
import type { StreamListener } from '../stream/stream-listener.ts';
import { arena } from '../write-reply.ts';
import type { Http2FrameReader } from './frame-reader.ts';
import { ERROR, FLAG, FRAME, FRAME_HEADER, WINDOW, writeFrameHeader, writeWord } from './frames.ts';
import { BODY_PREFIX_MAX, type Http2Service } from './http2-service.ts';
import { Http2Stream } from './http2-stream.ts';
import { ParkedReplies } from './parked-replies.ts';
import { PacedWriter } from './paced-writer.ts';
import { FIELDS_MAX } from './reply-fields.ts';
import { RequestBodies, type BodyVerdict } from './request-bodies.ts';
import { ServerInput, type ServerInputHost } from './server-input.ts';
import { SETTINGS_SIZE, writeSettings } from './server-settings.ts';

/**
 * Space reserved before a reply's message for everything that precedes it: HEADERS, the DATA header and the start of
 * the body.
 */
const HEADERS_ROOM = FRAME_HEADER + FIELDS_MAX + FRAME_HEADER + BODY_PREFIX_MAX;
/** No other frame written here is longer. */
const CONTROL_ROOM = 256;
/** Measured memory per stream, in addition to received and buffered bytes. */
const STREAM_SIZE = 1024;
/** Number of streams that were refused before their whole body had arrived. Their remaining frames are ignored. */
const REFUSED_MAX = 64;

/**
 * One HTTP/2 connection (RFC 9113) whose requests are DNS queries, over HTTPS or gRPC. It implements only the frames
 * that this requires, and writes them directly into the output buffer. The measurements behind this choice are in
 * docs/decisions/http2.md.
 *
 * A GET that can be answered at once creates no object. Replies are grouped like requests: a client that sends several
 * requests in one TLS record gets several replies in one. A client that sends one at a time gets one at a time, because
 * some (dnsperf) accept only one per record.
 */
export class Http2Connection extends ClientConnection implements ServerInputHost {
  readonly #service: Http2Service;
  readonly #input = new ServerInput(this);
  readonly #streams = new Map<number, Http2Stream>();
  readonly #parked = new ParkedReplies();
  readonly #bodies: RequestBodies;
  readonly #writer: PacedWriter;
  readonly #refused: number[] = [];
  #present = 0;
  #presentStream: Http2Stream | null = null;
  #now = 0;
  /** Number of requests in the current chunk. */
  #requests = 0;

  constructor(socket: Socket, host: StreamListener, service: Http2Service) {
    super(socket, host);
    this.#service = service;
    this.#writer = new PacedWriter(socket, (one) => host.gather(one), this.#left);
    this.#writer.grouped = service.grouped;
    writeSettings(arena, this.beginFrame(SETTINGS_SIZE, FRAME.SETTINGS, 0, 0), host.limits.streams);
    this.#bodies = new RequestBodies(service.bodyMax, (id, bytes) => {
      writeWord(arena, this.beginFrame(4, FRAME.WINDOW_UPDATE, 0, id), bytes);
    });
    this.write();
  }

  protected get heldBeside(): number {
    // The intake limits pending ones. The others are still open because of the client.
    const left = Math.max(0, this.#streams.size - this.pending.awaited);
    return this.#input.held + this.#bodies.held + this.#parked.bytes + left * STREAM_SIZE;
  }

  protected get stuck(): boolean {
    return this.#parked.size > 0 || (this.ended && this.#streams.size > 0);
  }

  protected override get unsent(): number {
    return super.unsent + this.#writer.bytes;
  }

  protected stopInput(abrupt: boolean): void {
    if (!abrupt) {
      this.#goAway(ERROR.NO_ERROR);
      return;
    }
    // The client will send nothing more, neither bodies nor window updates.
    for (const stream of this.#streams.values()) {
      if (!stream.asked || stream.reply !== null) this.#forget(stream);
    }
    this.#input.stop();
  }

  protected override end(): void {
    this.#writer.finish();
    super.end();
  }

  // Input

  protected consume(chunk: Buffer, now: number): number {
    const input = this.#input;
    this.#now = now;
    this.#requests = 0;
    let at = 0;
    while (at < chunk.length && !this.stopped()) {
      at += input.read(chunk, at);
      if (!input.whole) continue;
      this.count();
      input.take();
    }
    input.release();
    return at;
  }

  onRequest(id: number, tooLarge: boolean, whole: boolean): void {
    if (this.ended || this.#streams.size >= this.host.limits.streams) {
      return this.#reset(id, ERROR.REFUSED_STREAM);
    }
    if (++this.#requests > 1) this.#writer.grouped = true;
    if (tooLarge) this.#refuse(id, this.#service.refusals.fields, whole);
    else this.#request(id, whole);
  }

  onMalformed(id: number): void {
    this.#reset(id, ERROR.PROTOCOL_ERROR);
  }

  onTrailers(id: number, proper: boolean): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (!this.#refused.includes(id)) this.onViolation(ERROR.STREAM_CLOSED);
    } else if (stream.asked) {
      this.onViolation(ERROR.STREAM_CLOSED);
    } else if (proper) {
      this.#takeBody(stream, this.#bodies.finish(stream));
    } else {
      this.#reset(id, ERROR.PROTOCOL_ERROR);
    }
  }

  #request(id: number, whole: boolean): void {
    const { header } = this.#input;
    const { bodyMax, refusals } = this.#service;
    const verdict = this.#service.judge(header);
    if (typeof verdict === 'number') {
      this.#refuse(id, verdict, whole);
    } else if (verdict === 'message') {
      const { message, length } = this.#service;
      if (whole) this.#serve(id, null, message, 0, length);
      else this.#awaitBody(id, message.slice(0, length));
    } else if (whole || header.contentLength > bodyMax) {
      this.#refuse(id, refusals.body, whole);
    } else {
      this.#awaitBody(id, null);
    }
  }

  /** @param question the query from a GET, whose body must end but is otherwise ignored */
  #awaitBody(id: number, question: Uint8Array | null): void {
    const stream = this.#open(id, this.#input.header.contentLength);
    stream.question = question;
    this.host.wheel.set(stream, this.host.limits.readTimeoutMs);
  }

  onData(frame: Http2FrameReader): void {
    const { start, end, id } = frame;
    if (!this.#bodies.count(end - start)) return this.onViolation(ERROR.FLOW_CONTROL_ERROR);
    const stream = this.#streams.get(id);
    if (stream !== undefined && !stream.asked) {
      this.#takeBody(stream, this.#bodies.take(stream, frame));
    } else if (!this.#refused.includes(id)) {
      this.onViolation(ERROR.STREAM_CLOSED);
    }
  }

  #takeBody(stream: Http2Stream, verdict: BodyVerdict): void {
    const { bytes, start, end, error } = this.#bodies;
    switch (verdict) {
      case 'more':
        return;
      case 'whole':
        this.host.wheel.cancel(stream);
        stream.asked = true;
        return this.#serveBody(stream, bytes, start, end);
      case 'too-long':
        return this.#refuse(stream.id, this.#service.refusals.body, false);
      case 'reset':
        return this.#reset(stream.id, error);
      case 'fail':
        return this.onViolation(error);
    }
  }

  #serveBody(stream: Http2Stream, bytes: Uint8Array, start: number, end: number): void {
    // A GET carries its query in the URL, and its body is ignored.
    if (stream.question !== null) return this.#serve(stream.id, stream, bytes, start, end);
    const service = this.#service;
    const wrong = service.find(bytes, start, end);
    if (wrong === null) this.#serve(stream.id, stream, bytes, service.queryStart, service.queryEnd);
    else this.#refuse(stream.id, wrong, true);
  }

  #serve(
    id: number,
    stream: Http2Stream | null,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    this.#present = id;
    this.#presentStream = stream;
    this.fresh = true;
    this.host.intake.take(this, bytes, start, end, this.#now);
  }

  onSettings(streamWindow: number | null): void {
    // Do this only once per frame, because a frame may set the window thousands of times and each open stream has its
    // own.
    if (!this.#parked.restart(streamWindow ?? this.#parked.streamWindow, this.#streams.values()))
      return this.onViolation(ERROR.FLOW_CONTROL_ERROR);
    this.beginFrame(0, FRAME.SETTINGS, FLAG.ACK, 0);
    this.#sendParked();
  }

  onWindow(id: number, more: number): void {
    const stream = this.#streams.get(id) ?? null;
    if (id !== 0 && stream === null) return;
    const error = more === 0 ? ERROR.PROTOCOL_ERROR : ERROR.FLOW_CONTROL_ERROR;
    if (more > 0 && this.#parked.grant(stream, more)) this.#sendParked();
    else if (stream === null) this.onViolation(error);
    else this.#reset(id, error);
  }

  onReset(id: number): void {
    // A pending reply counts until it arrives, so a client cannot get more of them by resetting streams.
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#forget(stream);
  }

  onViolation(error: number): void {
    this.#goAway(error);
    this.write();
    this.host.intake.drop(this);
    this.stopInput(true);
    this.end();
  }

  // Output

  get at(): number {
    return this.written + HEADERS_ROOM;
  }

  reserve(size: number): void {
    if (this.written + HEADERS_ROOM + size > arena.length) this.write();
  }

  send(length: number, way: Http2Stream | null): void {
    const stream = way ?? this.#presentStream;
    const id = stream?.id ?? this.#present;
    if (stream !== null && stream.closed) {
      this.host.counters.dropped.add(1);
      return;
    }
    const service = this.#service;
    const from = this.at;
    const begin = this.written;
    let at = service.writeFields(arena, begin + FRAME_HEADER, arena, from, from + length);
    writeFrameHeader(arena, begin, at - begin - FRAME_HEADER, FRAME.HEADERS, FLAG.END_HEADERS, id);
    this.host.counters.sent.add(1);
    this.host.counters.response(service.status);
    const body = service.writePrefix(arena, at + FRAME_HEADER, length);
    const size = body - at - FRAME_HEADER + length;
    arena.copyWithin(body, from, from + length);
    if (this.#parked.fits(size, stream)) {
      writeFrameHeader(arena, at, size, FRAME.DATA, this.#lastFlag, id);
      this.written = body + length;
      this.#parked.window -= size;
      this.#endReply(id);
      if (stream !== null) this.#streams.delete(id);
    } else {
      at += FRAME_HEADER;
      const waits = new Uint8Array(arena.subarray(at, at + size));
      this.written = at - FRAME_HEADER;
      const parked = stream ?? this.#open(id, -1);
      parked.asked = true;
      this.#parked.add(parked, waits);
      this.#sendParked();
    }
    this.#leaveInTime();
  }

  keepSilent(way: Http2Stream | null): void {
    if (way !== null && way.closed) return;
    this.#refuse(way?.id ?? this.#present, this.#service.refusals.silence, true);
  }

  refuse(): void {
    this.#refuse(this.#present, this.#service.refusals.query, true);
  }

  wayBack(): Http2Stream {
    const stream = this.#presentStream ?? this.#open(this.#present, -1);
    stream.asked = true;
    return stream;
  }

  protected override leave(size: number): boolean {
    return this.#writer.write(written(size));
  }

  #left = (): void => {
    if (this.unsent <= this.host.limits.unreadBytes) this.unblock();
  };

  #leaveInTime(): void {
    if (!this.#writer.grouped || this.written + this.unsent > this.host.limits.unreadBytes)
      this.write();
  }

  /**
   * Sends a reply without a body.
   * @param whole true if the request is complete
   */
  #refuse(id: number, code: number, whole: boolean): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#forget(stream);
    this.host.counters.response(code);
    this.reserve(CONTROL_ROOM);
    const begin = this.written;
    const at = this.#service.writeRefusal(arena, begin + FRAME_HEADER, code);
    const flags = FLAG.END_HEADERS | FLAG.END_STREAM;
    writeFrameHeader(arena, begin, at - begin - FRAME_HEADER, FRAME.HEADERS, flags, id);
    this.written = at;
    if (!whole) {
      this.#passOver(id);
      this.#sendReset(id, ERROR.NO_ERROR);
    }
    this.#leaveInTime();
  }

  /** Ignores further frames on this stream, because they are not an error. */
  #passOver(id: number): void {
    this.#refused.push(id);
    if (this.#refused.length > REFUSED_MAX) this.#refused.shift();
  }

  #open(id: number, contentLength: number): Http2Stream {
    const stream = new Http2Stream(
      id,
      this.#parked.streamWindow,
      WINDOW,
      contentLength,
      this.#late,
    );
    this.#streams.set(id, stream);
    return stream;
  }

  /** Called when a body has not arrived in time. */
  #late = (stream: Http2Stream): void => {
    this.host.counters.timedOut.add(1);
    this.#reset(stream.id, ERROR.CANCEL);
    this.flush();
  };

  #forget(stream: Http2Stream): void {
    this.host.wheel.cancel(stream);
    stream.closed = true;
    this.#streams.delete(stream.id);
    this.#bodies.drop(stream);
    this.#parked.delete(stream);
  }

  #sendParked(): void {
    const begin = (length: number, last: boolean, id: number): number =>
      this.beginFrame(length, FRAME.DATA, last ? this.#lastFlag : 0, id);
    const ended = ({ id }: Http2Stream): void => {
      this.#endReply(id);
      this.#streams.delete(id);
    };
    if (this.#parked.send(arena, begin, ended)) this.moved = true;
  }

  /** Flags for a reply's last DATA frame. */
  get #lastFlag(): number {
    return this.#service.trailers === null ? FLAG.END_STREAM : 0;
  }

  /** Called when the reply's body has been written. Ends the reply unless that has already happened. */
  #endReply(id: number): void {
    const { trailers } = this.#service;
    if (trailers === null) return;
    const flags = FLAG.END_HEADERS | FLAG.END_STREAM;
    const at = this.beginFrame(trailers.length, FRAME.HEADERS, flags, id);
    for (let i = 0; i < trailers.length; i++) arena[at + i] = trailers[i]!;
  }

  #reset(id: number, error: number): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#forget(stream);
    this.#passOver(id);
    this.#sendReset(id, error);
  }

  #sendReset(id: number, error: number): void {
    writeWord(arena, this.beginFrame(4, FRAME.RST_STREAM, 0, id), error);
  }

  #goAway(error: number): void {
    writeWord(
      arena,
      writeWord(arena, this.beginFrame(8, FRAME.GOAWAY, 0, 0), this.#input.last),
      error,
    );
  }

  beginFrame(length: number, type: number, flags: number, id: number): number {
    this.reserve(length + FRAME_HEADER);
    const at = writeFrameHeader(arena, this.written, length, type, flags, id);
    this.written = at + length;
    return at;
  }
}

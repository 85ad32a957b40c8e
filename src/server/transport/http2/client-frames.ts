/** Frames written by an HTTP/2 client, each in its own buffer. */
import {
  FRAME,
  FRAME_HEADER,
  PREFACE,
  SETTING,
  WINDOW,
  writeFrameHeader,
  writeWord,
} from './frames.ts';

/** Builds a frame that contains a copy of this payload. */
export function makeFrame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array,
): Buffer {
  const out = Buffer.allocUnsafe(FRAME_HEADER + payload.length);
  out.set(payload, writeFrameHeader(out, 0, payload.length, type, flags, stream));
  return out;
}

/** Builds a frame whose payload consists of 32-bit words. */
export function wordsFrame(
  type: number,
  flags: number,
  stream: number,
  ...words: readonly number[]
): Buffer {
  const out = Buffer.allocUnsafe(FRAME_HEADER + 4 * words.length);
  let at = writeFrameHeader(out, 0, 4 * words.length, type, flags, stream);
  for (const word of words) at = writeWord(out, at, word);
  return out;
}

/**
 * Builds a client's first frames. They disable server push and set how many bytes the server may send initially, per
 * stream and in total.
 */
export function clientGreeting(streamWindow: number, connectionWindow: number): Buffer {
  const settings = Buffer.alloc(12);
  settings.writeUInt16BE(SETTING.ENABLE_PUSH, 0);
  settings.writeUInt16BE(SETTING.INITIAL_WINDOW_SIZE, 6);
  settings.writeUInt32BE(streamWindow, 8);
  const more = wordsFrame(FRAME.WINDOW_UPDATE, 0, 0, connectionWindow - WINDOW);
  return Buffer.concat([PREFACE, makeFrame(FRAME.SETTINGS, 0, 0, settings), more]);
}

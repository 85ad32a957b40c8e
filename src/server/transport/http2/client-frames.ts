/** Frames that a client of HTTP/2 writes, each as a separate buffer. */
import {
  FRAME,
  FRAME_HEADER,
  PREFACE,
  SETTING,
  WINDOW,
  writeFrameHeader,
  writeWord,
} from './frames.ts';

/** A frame with a copy of this payload. */
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

/** A frame whose payload is some 32-bit words. */
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
 * The first frames of a client: no pushes, and the bytes that the server may send at once, per
 * stream and in all.
 */
export function clientGreeting(streamWindow: number, connectionWindow: number): Buffer {
  const settings = Buffer.alloc(12);
  settings.writeUInt16BE(SETTING.ENABLE_PUSH, 0);
  settings.writeUInt16BE(SETTING.INITIAL_WINDOW_SIZE, 6);
  settings.writeUInt32BE(streamWindow, 8);
  const more = wordsFrame(FRAME.WINDOW_UPDATE, 0, 0, connectionWindow - WINDOW);
  return Buffer.concat([PREFACE, makeFrame(FRAME.SETTINGS, 0, 0, settings), more]);
}

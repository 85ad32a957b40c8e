/**
 * The settings of a server's connections (RFC 9113 section 6.5.2): its own, and what clients say
 * theirs are.
 */
import { ERROR, PAYLOAD_MAX, SETTING, WINDOW_MAX, writeWord } from './frames.ts';
import { LIST_MAX } from './request-header.ts';

/** Bytes of one setting: its name and its value. */
const SIZE = 6;

/** Bytes that `writeSettings` writes. */
export const SETTINGS_SIZE: number = 2 * SIZE;

/**
 * Writes how many streams a client may have open at a time, and how large the fields of a request
 * may be.
 */
export function writeSettings(out: Uint8Array, at: number, streams: number): void {
  const settings = [
    [SETTING.MAX_CONCURRENT_STREAMS, streams],
    [SETTING.MAX_HEADER_LIST_SIZE, LIST_MAX],
  ] as const;
  for (const [name, value] of settings) {
    out[at] = 0;
    out[at + 1] = name;
    at = writeWord(out, at + 2, value);
  }
}

/** The settings of a client that matter here. */
export interface ClientSettings {
  /** Bytes that may be sent on a stream to begin with; null: it does not say. */
  readonly streamWindow: number | null;
  /** The error in them, or null. */
  readonly error: number | null;
}

/** Reads whole settings. The last of several values counts. */
export function readSettings(bytes: Buffer, start: number, end: number): ClientSettings {
  let streamWindow: number | null = null;
  for (let at = start; at < end; at += SIZE) {
    const name = (bytes[at]! << 8) | bytes[at + 1]!;
    const value = bytes.readUInt32BE(at + 2);
    const error = faultOf(name, value);
    if (error !== null) return { streamWindow, error };
    if (name === SETTING.INITIAL_WINDOW_SIZE) streamWindow = value;
  }
  return { streamWindow, error: null };
}

/** The error in the value of a setting, or null. */
function faultOf(name: number, value: number): number | null {
  switch (name) {
    case SETTING.ENABLE_PUSH:
      return value > 1 ? ERROR.PROTOCOL_ERROR : null;
    case SETTING.MAX_FRAME_SIZE:
      // More than the least is never used.
      return value < PAYLOAD_MAX || value > 0xffffff ? ERROR.PROTOCOL_ERROR : null;
    case SETTING.INITIAL_WINDOW_SIZE:
      return value > WINDOW_MAX ? ERROR.FLOW_CONTROL_ERROR : null;
    default:
      return null;
  }
}

/** HTTP/2 connection settings (RFC 9113 section 6.5.2), both the server's own and those received from clients. */
import { ERROR, PAYLOAD_MAX, SETTING, WINDOW_MAX, writeWord } from './frames.ts';
import { LIST_MAX } from './request-header.ts';

/** Size of one setting, which consists of an identifier and a value. */
const SIZE = 6;

/** Number of bytes written by `writeSettings`. */
export const SETTINGS_SIZE: number = 2 * SIZE;

/** Writes the settings for the maximum number of concurrent streams and the maximum size of a request's fields. */
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

export interface ClientSettings {
  /** Number of bytes that may initially be sent on a stream, or null if not included. */
  readonly streamWindow: number | null;
  /** The error in the settings, or null. */
  readonly error: number | null;
}

/** Parses complete settings. If one occurs several times, the last value wins. */
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

/** Returns the error in a setting's value, or null if the value is valid. */
function faultOf(name: number, value: number): number | null {
  switch (name) {
    case SETTING.ENABLE_PUSH:
      return value > 1 ? ERROR.PROTOCOL_ERROR : null;
    case SETTING.MAX_FRAME_SIZE:
      // Only the minimum is ever used.
      return value < PAYLOAD_MAX || value > 0xffffff ? ERROR.PROTOCOL_ERROR : null;
    case SETTING.INITIAL_WINDOW_SIZE:
      return value > WINDOW_MAX ? ERROR.FLOW_CONTROL_ERROR : null;
    default:
      return null;
  }
}

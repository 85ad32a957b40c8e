/**
 * Returns true if this serial is newer than the other in serial arithmetic (RFC 1982). Serials that are half the range
 * apart have no order, so the result is false.
 */
export function isNewer(serial: number, than: number): boolean {
  const ahead = (serial - than) >>> 0;
  return ahead > 0 && ahead < 0x8000_0000;
}

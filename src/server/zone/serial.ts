/**
 * True if a zone with this serial has changed since the other: serial arithmetic (RFC 1982).
 * Serials half the range apart have no order: false.
 */
export function isNewer(serial: number, than: number): boolean {
  const ahead = (serial - than) >>> 0;
  return ahead > 0 && ahead < 0x8000_0000;
}

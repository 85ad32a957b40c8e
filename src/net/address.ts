/** An address and port as people write them: `192.0.2.1:53`, `[2001:db8::1]:53`. */
export function printHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

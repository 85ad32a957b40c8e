/** A certificate for the tests. */
import type { ListenerTls } from '../../src/server/transport/listener.ts';

/**
 * A self-signed test certificate for dns.example, 127.0.0.1 and ::1, valid for a hundred years. The key protects
 * nothing. Made with: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj
 * /CN=dns.example -addext subjectAltName=DNS:dns.example,IP:127.0.0.1,IP:::1
 */
export const testCertificate = `-----BEGIN CERTIFICATE-----
MIIBtDCCAVugAwIBAgIUTR6EUt79263OHdm4flz1unUwC6gwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLZG5zLmV4YW1wbGUwIBcNMjYxMTIxMTAwNDQ3WhgPMjEyNjEw
MjgxMDA0NDdaMBYxFDASBgNVBAMMC2Rucy5leGFtcGxlMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAE6RUoB+1Xd8fBwQbmOC1WLCg+w2J+U29GLtsE5VoW/14ncAnE
vbDRektgdn7OPIt1nNFoNykvt+KwgaiCCSUzTKOBhDCBgTAdBgNVHQ4EFgQU6SIn
RqMyt2npphHhe0ustDwLfF8wHwYDVR0jBBgwFoAU6SInRqMyt2npphHhe0ustDwL
fF8wDwYDVR0TAQH/BAUwAwEB/zAuBgNVHREEJzAlggtkbnMuZXhhbXBsZYcEfwAA
AYcQAAAAAAAAAAAAAAAAAAAAATAKBggqhkjOPQQDAgNHADBEAiBvBg3YOIR8OLDr
PY3Frpxcn7O9TjNciHm3cBHnBlnwnwIgceVfU6w9ZbCm+oIz42NvIrVDkx3MfYNQ
bxGXIbrnZl0=
-----END CERTIFICATE-----
`;

export const testKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbXXmQ/lb4naW4GPW
IBkRCaD2ecDOUOlotNSbWl6j7cqhRANCAATpFSgH7Vd3x8HBBuY4LVYsKD7DYn5T
b0Yu2wTlWhb/XidwCcS9sNF6S2B2fs48i3Wc0Wg3KS+34rCBqIIJJTNM
-----END PRIVATE KEY-----
`;

/** The certificate for a listener that does not request client certificates. */
export const testTls: ListenerTls = {
  certificate: testCertificate,
  key: testKey,
  authority: null,
  clientAuth: 'nocert',
  ticketSecret: null,
  keyLog: null,
};

/** Another CA, made the same way for stranger.example. It has not signed anything here. */
export const strangerCertificate = `-----BEGIN CERTIFICATE-----
MIIBjTCCATOgAwIBAgIUALo/TgzjIRP3yIq02GZdYiUO1WowCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQc3RyYW5nZXIuZXhhbXBsZTAgFw0yNjExMjIwNDU4NTNaGA8y
MTI2MTAyOTA0NTg1M1owGzEZMBcGA1UEAwwQc3RyYW5nZXIuZXhhbXBsZTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABEdcm7naFdCAzvWsWcdG+SSG+VEYd3kJjZDA
tlveY/5ISZVrfhMEOtzC2qdkd6Z+ZwTSPnvtU/MHcEjWblCnI+2jUzBRMB0GA1Ud
DgQWBBRmmN6NrFODAcHWxXGF6c8E+E7RGjAfBgNVHSMEGDAWgBRmmN6NrFODAcHW
xXGF6c8E+E7RGjAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIGPx
CnBa+VvOawx3HlVVVQi2u70WGH5MA/TcJMv8IvM8AiEA+hB4bpV5db4+cExwVjJO
D94eUmnrSqzb8fOOUlG+erc=
-----END CERTIFICATE-----
`;

/** Checks our own servers' certificates before a configuration is accepted. */
import { whyFailed } from '../../base/why-failed.ts';
import { builtins } from '../../base/builtins.ts';
import { Problem } from '../../base/problem.ts';
import { FILE_MAX, readFileBytes } from '../../base/read-file.ts';
import type { ControlContext } from './control-context.ts';

/** A server's certificate and key, and the CA that verifies the certificates of its clients. */
export interface ServerCertificate {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer | null;
}

/**
 * Reads and checks a certificate and its key, and the CA if there is one.
 * @param forWorkers true if workers need them too
 * @throws Problem `tls-unreadable` or `tls-unusable`
 */
export function readServerCertificate(
  files: { readonly certificate: string; readonly key: string; readonly authority: string | null },
  context: ControlContext,
  forWorkers = false,
): ServerCertificate {
  const read = (file: string): Buffer => readCertificateFile(file, context, forWorkers);
  const own = { cert: read(files.certificate), key: read(files.key) };
  const ca = files.authority === null ? null : read(files.authority);
  checkCertificate(own, files);
  if (ca !== null) checkAuthority(ca, files.authority!);
  return { ...own, ca };
}

/**
 * Reads one of a certificate's files.
 * @param forWorkers true if workers need it too
 * @throws Problem `tls-unreadable`
 */
export function readCertificateFile(
  file: string,
  context: ControlContext,
  forWorkers = false,
): Buffer {
  try {
    return forWorkers ? context.file(file) : readFileBytes(context.path(file), FILE_MAX.small);
  } catch (error) {
    throw new Problem({
      code: 'tls-unreadable',
      text: `could not load TLS cert: ${whyFailed(error)}`,
      remedy: `Check the path and its permissions: ls -l ${context.path(file)}`,
      cause: error,
    });
  }
}

/**
 * Checks that these files can be used for a TLS server.
 * @param files their names in the Corefile, for the message
 * @throws Problem `tls-unusable`
 */
export function checkCertificate(
  parts: { readonly cert: Buffer; readonly key: Buffer; readonly ca?: Buffer },
  files: { readonly certificate: string; readonly key: string },
): void {
  try {
    builtins.tls().createSecureContext(parts);
  } catch (error) {
    throw new Problem({
      code: 'tls-unusable',
      text: `could not load TLS cert: ${whyFailed(error)}`,
      hint: isKey(parts.cert)
        ? `${files.certificate} contains a private key; the certificate must come first, and then its key.`
        : 'The files are not PEM, or the key does not match the certificate.',
      remedy: `Compare: openssl x509 -noout -pubkey -in ${files.certificate}; openssl pkey -pubout -in ${files.key}`,
      cause: error,
    });
  }
}

/**
 * Checks that the CA file contains a certificate. If it were empty, either no client or every client would be trusted.
 * @throws Problem `tls-unusable`
 */
export function checkAuthority(pem: Buffer, file: string): void {
  let cause: unknown = null;
  try {
    if (pem.includes('-----BEGIN ')) new (builtins.crypto().X509Certificate)(pem);
    else cause = Object.assign(new Error(), { code: 'ERR_OSSL_PEM_NO_START_LINE' });
  } catch (error) {
    cause = error;
  }
  if (cause === null) return;
  throw new Problem({
    code: 'tls-unusable',
    text: `could not read root certs: ${whyFailed(cause)}`,
    hint: `${file} must contain CA certificates in PEM form.`,
    remedy: `Inspect it: openssl x509 -noout -subject -in ${file}`,
    cause,
  });
}

/**
 * Explains why a certificate is not currently valid, because it has expired or its validity has not begun. Returns null
 * if it is valid or cannot be read.
 */
export function outOfTime(pem: Buffer, wallMs: number): string | null {
  try {
    const { validFrom, validFromDate, validTo, validToDate } =
      new (builtins.crypto().X509Certificate)(pem);
    if (validToDate.getTime() < wallMs) return `expired on ${validTo}`;
    return validFromDate.getTime() > wallMs ? `is not valid before ${validFrom}` : null;
  } catch {
    return null;
  }
}

/** Returns when a certificate's validity ends, in milliseconds since 1970, or null if it cannot be read. */
export function endOf(pem: Buffer): number | null {
  try {
    return new (builtins.crypto().X509Certificate)(pem).validToDate.getTime();
  } catch {
    return null;
  }
}

function isKey(pem: Buffer): boolean {
  return /^-----BEGIN [A-Z ]*PRIVATE KEY-----/m.test(pem.toString('latin1'));
}

/** `tls`: the certificate for encrypted listeners. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Problem } from '../../base/problem.ts';
import { whyFailed } from '../../base/why-failed.ts';
import { position } from '../../corefile/positions.ts';
import { setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { choice, word, worded } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { outOfTime, readServerCertificate } from '../../engine/contract/server-certificate.ts';
import { CertificateWatch } from './certificate-watch.ts';

const files = position(
  'CERT KEY [CA]',
  'PEM files: certificate chain, private key, and the CA for client certificates',
  (line) => {
    if (line.left === 0) {
      return line.refuse('ACME certificates are not supported', undefined, {
        hint: 'Only certificates in files are supported: tls CERT KEY [CA].',
        remedy: 'Have cert-manager or another ACME client write the files, and mount them.',
      });
    }
    if (line.left === 1 || line.left > 3) line.refuseCount();
    const [certificate, key, authority] = line.takeAll().map(({ text }) => text);
    return { certificate: certificate!, key: key!, authority: authority ?? '' };
  },
);

const syntax = directive({
  name: 'tls',
  summary: 'sets the certificate and key for encrypted listeners',
  repeat: 'last',
  args: { files },
  properties: {
    clientAuth: setting(
      'client_auth',
      worded(
        choice('nocert', 'request', 'require', 'verify_if_given', 'require_and_verify'),
        (word) => `unknown authentication type '${word}'`,
      ),
      {
        default: 'nocert',
        help: 'whether clients must present a certificate, and whether CA must have signed it',
      },
    ),
    keyLog: setting('keylog', word('FILE'), {
      help: 'file to which connection secrets are written, for decrypting captures; only for debugging',
    }),
  },
});

/**
 * Affects only the configuration. Files are read when the configuration is loaded, so a renewed certificate requires a
 * reload.
 */
export const tls: Plugin = definePlugin({
  syntax,
  plan({ files: { certificate, key, authority }, clientAuth, keyLog }, plan) {
    const below = (file: string): string =>
      file === '' || file.startsWith('/') ? file : join(plan.root, file);
    plan.tls = {
      certificate: below(certificate),
      key: below(key),
      authority: below(authority),
      clientAuth,
      keyLog: below(keyLog ?? ''),
    };
  },
  control({ files: { certificate, key, authority }, keyLog }, context) {
    const named = { certificate, key, authority: authority === '' ? null : authority };
    const { cert } = readServerCertificate(named, context, true);
    const why = outOfTime(cert, context.clock.wall());
    if (why !== null)
      context.log.warning(
        `the certificate ${certificate} ${why}, so clients that verify it will fail`,
      );
    const at = context.path(certificate);
    const watch = context.keep(`tls/${at}`, () => new CertificateWatch(at, context));
    context.onStart(() => watch.follow(cert));
    if (keyLog === null || keyLog === '') return;
    const path = context.path(keyLog);
    checkWritable(path);
    context.log.warning(`Writing TLS Key Log to ${JSON.stringify(path)}`);
    if (existsSync(path) && (statSync(path).mode & OTHERS_READ) !== 0)
      context.log.warning(
        `${JSON.stringify(path)} contains the secrets of all connections but can be read by others; run chmod 600 ${path}`,
      );
  },
});

/** Read permission for group and others. */
const OTHERS_READ = 0o044;

/**
 * Checks that a file could be written, without creating it, because not every process that reads a configuration serves
 * it.
 * @throws Problem
 */
function checkWritable(path: string): void {
  try {
    accessSync(existsSync(path) ? path : dirname(path), constants.W_OK);
    if (existsSync(path) && statSync(path).isDirectory())
      throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
  } catch (error) {
    throw new Problem({
      code: 'keylog-unwritable',
      text: `unable to write TLS Key Log to ${JSON.stringify(path)}: ${whyFailed(error)}`,
      remedy: `Check the directory and its permissions: ls -ld ${dirname(path)}`,
      cause: error,
    });
  }
}

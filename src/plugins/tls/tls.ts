/** `tls`: the certificate of encrypted listeners. */
import { join } from 'node:path';
import { position } from '../../corefile/positions.ts';
import { setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { choice, worded } from '../../corefile/values.ts';
import { definePlugin, type Plugin } from '../../server/contract/plugin.ts';
import { checkCertificate, readCertificateFile } from '../../server/contract/server-certificate.ts';

const files = position(
  'CERT KEY [CA]',
  'PEM files: the certificate with its chain, its key, whom clients are signed by',
  (line) => {
    if (line.left === 0) {
      return line.refuse('certificates by ACME are not available', undefined, {
        hint: 'Only certificates in files are: tls CERT KEY [CA].',
        remedy: 'Let cert-manager or another ACME client write the files, and mount them.',
      });
    }
    if (line.left === 1 || line.left > 3) line.refuseCount();
    const [certificate, key, authority] = line.takeAll().map(({ text }) => text);
    return { certificate: certificate!, key: key!, authority: authority ?? '' };
  },
);

const syntax = directive({
  name: 'tls',
  summary: 'certificate and key of tls and https listeners',
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
        help: 'whether clients show a certificate, and whether it must be signed by CA',
      },
    ),
  },
  retired: { keylog: 'session keys are not written to files here' },
});

/** Configures only. Files are read when the configuration is taken: a renewed certificate needs a reload. */
export const tls: Plugin = definePlugin({
  syntax,
  plan({ files: { certificate, key, authority }, clientAuth }, plan) {
    const below = (file: string): string =>
      file === '' || file.startsWith('/') ? file : join(plan.root, file);
    plan.tls = {
      certificate: below(certificate),
      key: below(key),
      authority: below(authority),
      clientAuth,
    };
  },
  control({ files: { certificate, key, authority } }, context) {
    const read = (file: string): Buffer => readCertificateFile(file, context);
    const parts = { cert: read(certificate), key: read(key) };
    checkCertificate(authority === '' ? parts : { ...parts, ca: read(authority) }, {
      certificate,
      key,
    });
  },
});

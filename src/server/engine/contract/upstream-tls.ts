import { whyFailed } from '../../base/why-failed.ts';
import { Problem, Problems, type Place } from '../../base/problem.ts';
import type { TlsFiles } from '../../corefile/tls-files.ts';
import type { UpstreamTls } from '../../transport/upstream-address.ts';
import type { NamedFiles } from './named-files.ts';
import { checkAuthority, checkCertificate } from './server-certificate.ts';

/**
 * Reads the files given to a directive's `tls`, or returns null if there are none.
 * @throws Problems (`file-unreadable`, `tls-unusable`) that list everything wrong
 */
export function readUpstreamTls(
  plugin: string,
  { tls, at }: { readonly tls: TlsFiles | null; readonly at: Place },
  files: NamedFiles,
): UpstreamTls | null {
  if (tls === null) return null;
  const problems: Problem[] = [];
  const read = (file: string): Buffer | null => {
    if (file === '') return null;
    try {
      return files.file(file);
    } catch (error) {
      const problem = new Problem({
        code: 'file-unreadable',
        text: `plugin/${plugin}: could not load TLS file ${file}: ${whyFailed(error)}`,
        place: at,
        remedy: `Check that ${files.path(file)} exists and is readable.`,
        cause: error,
      });
      problems.push(problem);
      return null;
    }
  };
  const certificate = read(tls.certificate);
  const key = read(tls.key);
  const authority = read(tls.authority);
  if (problems.length > 0) throw new Problems(problems);
  if (certificate !== null && key !== null) checkCertificate({ cert: certificate, key }, tls);
  if (authority !== null) checkAuthority(authority, tls.authority);
  return { certificate, key, authority };
}

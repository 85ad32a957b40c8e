/** Signed zones. */
import { execFileSync } from 'node:child_process';

/** The way a zone is signed. */
export type Signing = 'plain' | 'nsec' | 'nsec3' | 'opt-out';

/**
 * Signs a zone file using BIND's tools, with new keys in the directory.
 * @returns the signed file
 */
export function sign(directory: string, zone: string, file: string, how: Signing): string {
  const keygen = (...more: string[]): void => {
    execFileSync('dnssec-keygen', ['-K', directory, '-a', 'ECDSAP256SHA256', ...more, zone], {
      stdio: 'pipe',
    });
  };
  keygen();
  keygen('-f', 'KSK');
  const hashed = {
    plain: [],
    nsec: [],
    nsec3: ['-3', 'aabb', '-H', '3'],
    'opt-out': ['-3', '-', '-A'],
  };
  const words = [
    '-S',
    '-K',
    directory,
    '-d',
    directory,
    '-o',
    zone,
    '-O',
    'full',
    '-f',
    `${file}.signed`,
  ];
  execFileSync('dnssec-signzone', [...words, ...hashed[how], file], { stdio: 'pipe' });
  return `${file}.signed`;
}

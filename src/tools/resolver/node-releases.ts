/**
 * The differences between Node.js releases, which are their c-ares version (`process.versions.ares`) and how they
 * convert non-ASCII names.
 */
import { Releases } from './releases.ts';

export interface NodeTraits {
  /** The c-ares release used by dns.resolve. */
  readonly cares: string;
}

/** The Node.js releases in which c-ares changed, oldest first. */
export const nodeReleases: Releases<NodeTraits> = new Releases<NodeTraits>(
  'node',
  { cares: '1.19.1' },
  [
    ['16.20'],
    ['18.12', { cares: '1.18.1' }],
    ['18.19', { cares: '1.20.1' }],
    ['18.20', { cares: '1.29.0' }],
    ['20.0', { cares: '1.19.0' }],
    ['20.9', { cares: '1.19.1' }],
    ['20.12', { cares: '1.27.0' }],
    ['20.18', { cares: '1.33.1' }],
    ['20.20', { cares: '1.34.6' }],
    ['22.0', { cares: '1.28.1' }],
    ['22.9', { cares: '1.33.1' }],
    ['22.14', { cares: '1.34.4' }],
    ['22.21', { cares: '1.34.5' }],
    ['22.23', { cares: '1.34.8' }],
    ['24.0', { cares: '1.34.5' }],
    ['24.21', { cares: '1.34.8' }],
    ['26.0', { cares: '1.34.6' }],
    ['26', { cares: '1.34.8' }],
  ],
);

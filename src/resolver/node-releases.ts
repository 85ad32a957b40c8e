/**
 * What the releases of Node.js do differently: which c-ares is inside (`process.versions.ares`), and how names beyond
 * ASCII are written.
 */
import { Releases } from './releases.ts';

export interface NodeTraits {
  /** The release of c-ares behind dns.resolve. */
  readonly cares: string;
}

export const nodeReleases = new Releases<NodeTraits>('node', { cares: '1.19.1' }, [
  ['16.20'],
  ['18.20', { cares: '1.29.0' }],
  ['20.9', { cares: '1.19.1' }],
  ['20.20', { cares: '1.34.6' }],
  ['22.0', { cares: '1.28.1' }],
  ['22.23', { cares: '1.34.8' }],
  ['24.21', { cares: '1.34.8' }],
  ['26', { cares: '1.34.8' }],
]);

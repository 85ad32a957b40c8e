import { findClient } from '../../src/resolver/clients.ts';
import { compareWithReal } from '../kit/real-comparison.ts';
import { cannotIsolate, sources } from '../kit/real-resolver.ts';

const reason = cannotIsolate();

compareWithReal(
  'c-ares in Node',
  findClient('node-resolve'),
  reason === null ? [process.execPath, sources.node] : null,
  reason ?? '',
);

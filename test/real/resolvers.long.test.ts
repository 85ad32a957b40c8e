/**
 * The scenarios that wait for time-outs, with the real clients, which takes minutes. In virtual time, every test run
 * covers them.
 */
import { compareWithReal } from '../kit/real-comparison.ts';
import { realGlibc, realGo, realMusl, realNode } from '../kit/real-programs.ts';

for (const program of [await realGlibc(), await realMusl(), await realGo(), realNode()])
  compareWithReal(program, 'long');

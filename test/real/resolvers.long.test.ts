/**
 * The scenarios that wait for time-outs, with the real clients. This takes minutes, while every test run covers them in
 * virtual time.
 */
import { compareWithReal } from '../kit/real-comparison.ts';
import { realGlibc, realGo, realMusl, realNode } from '../kit/real-programs.ts';

for (const program of [await realGlibc(), await realMusl(), await realGo(), realNode()])
  compareWithReal(program, 'long');

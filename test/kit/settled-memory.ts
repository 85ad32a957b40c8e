/** Measures the memory that a test's objects use. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Buffers that one collection finds unused are freed beside the program, and counted until the next one. */
const COLLECTIONS = 3;
/** Milliseconds for freeing them, so that the following collection is not sooner. */
const FREEING_MS = 50;

/** Returns the bytes of all objects and buffers that are still in use. */
export async function settledMemory(): Promise<number> {
  for (let turn = 0; turn < COLLECTIONS; turn++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, FREEING_MS));
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

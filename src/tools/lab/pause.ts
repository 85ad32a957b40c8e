/** Waits in real time. A lab runs in the kernel, where time cannot be simulated. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits in real time: what a lab plays happens in the kernel, whose time cannot be made. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

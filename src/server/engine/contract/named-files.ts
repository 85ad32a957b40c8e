/** Files that a Corefile names. */
export interface NamedFiles {
  /** The absolute path of a file named in the Corefile (`root` applies). */
  path(file: string): string;
  /**
   * What is in a small one (a certificate, a key). The control part reads it, and what it found is
   * kept for the workers of the configuration, which only get what was read: one that takes
   * another's place later has what was checked, whatever has become of the file.
   * @throws Error with the system's code, and in workers if the control part did not read it
   */
  file(name: string): Buffer;
}

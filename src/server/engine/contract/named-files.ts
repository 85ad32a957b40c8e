/** Files named in a Corefile. */
export interface NamedFiles {
  /** Returns the absolute path of a file named in the Corefile (`root` applies). */
  path(file: string): string;
  /**
   * Returns the contents of a small file (a certificate or a key). The control part reads it and stores it for the
   * configuration's workers, which get only what was read. A replacement worker therefore has the same contents, even
   * if the file has changed.
   * @throws Error with the system's code, and in workers if the control part did not read it
   */
  file(name: string): Buffer;
}

/** Files that a Corefile names. */
export interface NamedFiles {
  /** The absolute path of a file named in the Corefile (`root` applies). */
  path(file: string): string;
  /**
   * The content of a small file (a certificate, a key). The control part reads it and stores it for
   * the workers of the configuration, which only get what was read. So a replacement worker has the
   * same content, even if the file has changed.
   * @throws Error with the system's code, and in workers if the control part did not read it
   */
  file(name: string): Buffer;
}

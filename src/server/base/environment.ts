/** Reads environment variables by name, for this process or for one to be started. */
export type Environment = Readonly<Record<string, string | undefined>>;

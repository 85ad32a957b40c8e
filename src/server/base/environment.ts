/** Reads environment variables by name, for this process or one that is to be started. */
export type Environment = Readonly<Record<string, string | undefined>>;

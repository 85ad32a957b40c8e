/** Environment variables by name, of this process or for a program to start. */
export type Environment = Readonly<Record<string, string | undefined>>;

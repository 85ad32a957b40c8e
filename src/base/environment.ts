/** The variables of a process, or those that a program is started with, by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

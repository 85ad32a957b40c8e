/** What an engine says while it works. */

/** Hears what an engine is doing. */
export type Progress = (text: string) => void;

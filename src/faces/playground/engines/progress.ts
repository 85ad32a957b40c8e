/** The progress messages of an engine. */

/** Hears what an engine is doing. */
export type Progress = (text: string) => void;

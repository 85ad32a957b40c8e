/** Receives an engine's progress messages. */
export type Progress = (text: string) => void;

/** The version of these shapes. A version may gain fields, but none are removed or changed. */
export const VIEW_VERSION = 1;

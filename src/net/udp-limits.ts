/** Queries of one UDP listener that may wait for replies at a time; above it new ones are dropped (clients retry). */
export const MAX_WAITING = 65_536;

/**
 * The longest query that is read whole, bytes. CoreDNS reads 512 and answers FORMERR to what is longer; EDNS options
 * (padding, cookies) can make honest queries longer, so we read on. What exceeds this is answered FORMERR too.
 */
export const MAX_QUERY = 4096;

/** Socket buffers that are asked for, bytes; the system may give less (net.core.rmem_max, wmem_max). */
export const SOCKET_BUFFER = 4 * 1024 * 1024;

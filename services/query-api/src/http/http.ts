// What all routes share: who may read which workspace, the memory of a request, limits, cursors, compression, and how the
// OpenAPI document describes a route.

export { compressResponses } from './compression.ts';
export { encodeCursor, hashOf, parseToken, readCursor, tokenOf } from './cursor.ts';
export * from './describe.ts';
export { type Forwarded, forward, passDeletionOn, passOn, queryAsSent } from './forward.ts';
export { type JsonTail, sendJson } from './json-response.ts';
export * from './limits.ts';
export { overloaded, RETRY_AFTER_SECONDS } from './overloaded.ts';
export { acceptJson, MemoryRefused, RequestMemory, reserve } from './request-memory.ts';
export { allowsWorkspace, type Gate, type KnownLinks, type LinkKey, readerOf } from './workspace.ts';

/** Small chunks are sent together, about this many bytes: each chunk costs as much as some kilobytes. */
const CHUNK_BYTES = 256 * 1_024;

/** Joins small chunks of a request's body. */
export function* inLargeChunks(chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  let open: Uint8Array[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    open.push(chunk);
    bytes += chunk.length;
    if (bytes < CHUNK_BYTES) continue;
    yield open.length === 1 ? chunk : Buffer.concat(open, bytes);
    open = [];
    bytes = 0;
  }
  if (open.length > 0) yield Buffer.concat(open, bytes);
}

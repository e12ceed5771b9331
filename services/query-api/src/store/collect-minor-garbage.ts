import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** How many bytes may pass between two collections. */
const BYTES_MAX = 4 * 1_024 * 1_024;

type CollectGarbage = (options: { readonly type: 'minor' }) => void;

/** V8 collects young garbage before it has learned that it holds many bytes outside of its heap. */
function exposed(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as CollectGarbage;
}

let collectGarbage: CollectGarbage | undefined;

/**
 * Forwards chunks, and collects young garbage every few MiB. Node.js reads each 64 KiB into a buffer of its own, and its
 * HTTP client copies it into another. V8 lets some 100 MB of them pile up, and then collects its whole heap again and again.
 */
export async function* collectMinorGarbage(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  collectGarbage ??= exposed();
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > BYTES_MAX) {
      bytes = 0;
      collectGarbage({ type: 'minor' });
    }
    yield chunk;
  }
}

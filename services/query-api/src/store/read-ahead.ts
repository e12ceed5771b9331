/**
 * ClickHouse closes a connection on which it could send nothing for 30 s (its `http_send_timeout`), and a slow client empties
 * the buffers of the system in bursts, which may be further apart. So while the consumer takes nothing, a chunk is read
 * ahead every second: Linux lets ClickHouse send again when a sixteenth of a buffer of up to 32 MiB is free.
 */
const READ_AHEAD_MS = 1_000;

/** How many chunks are read ahead at most: 8 MiB in two minutes. */
const CHUNKS_AHEAD_MAX = 128;

/** What they have at most, in bytes: Node.js reads 64 KiB at a time. */
export const AHEAD_BYTES_MAX = CHUNKS_AHEAD_MAX * 64 * 1_024;

/** Forwards chunks, so that the connection they come from stays in use while the consumer is slow. */
export async function* readAhead(
  chunks: AsyncGenerator<Buffer, void, undefined>,
  intervalMs = READ_AHEAD_MS,
): AsyncGenerator<Buffer, void, undefined> {
  const ahead: Promise<IteratorResult<Buffer, void>>[] = [];
  const read = () => {
    if (ahead.length === CHUNKS_AHEAD_MAX) return;
    const next = chunks.next();
    // A failure is thrown where the chunk would be.
    next.catch(() => undefined);
    ahead.push(next);
  };
  try {
    for (;;) {
      const next = await (ahead.shift() ?? chunks.next());
      if (next.done) return;
      const timer = setInterval(read, intervalMs);
      try {
        yield next.value;
      } finally {
        clearInterval(timer);
      }
    }
  } finally {
    await chunks.return();
  }
}

/**
 * Resolves as `work` does, and rejects when a signal aborts before: `work` itself goes on, and nobody waits for it.
 *
 * @throws the signal's reason, and whatever `work` throws
 */
export async function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const reject = () => aborted.reject(signal.reason);
  if (signal.aborted) reject();
  signal.addEventListener('abort', reject);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', reject);
  }
}

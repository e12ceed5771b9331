/** How long a result is used again, in milliseconds, so that health checks cannot load what they check. */
const FRESH_MS = 1_000;

/**
 * Returns a check whether something can be reached: it resolves to `undefined` when it can, else to `phrase`. `request`
 * runs at most once a second, and counts as failed after `timeoutMs`.
 */
export function createProbe(
  phrase: string,
  timeoutMs: number,
  request: () => Promise<unknown>,
): () => Promise<string | undefined> {
  let result: Promise<string | undefined> | undefined;
  /** On the clock of `performance`, which nobody sets. */
  let startedAt = 0;

  async function probe(): Promise<string | undefined> {
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => timeout.reject(new Error('no response in time')), timeoutMs);
    try {
      await Promise.race([request(), timeout.promise]);
      return undefined;
    } catch {
      return phrase;
    } finally {
      clearTimeout(timer);
    }
  }

  return () => {
    if (!result || performance.now() - startedAt > FRESH_MS) {
      startedAt = performance.now();
      result = probe();
    }
    return result;
  };
}

/** An answer of a probe is used again for this long, so that health checks cannot load what they check. */
const FRESH_MS = 1_000;

/**
 * Whether something can be reached, asked at most once a second and by one question at a time: `undefined` when it can,
 * else `phrase`. No answer within `timeoutMs` counts as no.
 */
export function createProbe(
  phrase: string,
  timeoutMs: number,
  ask: () => Promise<unknown>,
): () => Promise<string | undefined> {
  let asking: Promise<string | undefined> | undefined;
  let askedAt = 0;

  async function probe(): Promise<string | undefined> {
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => timeout.reject(new Error('no answer in time')), timeoutMs);
    try {
      await Promise.race([ask(), timeout.promise]);
      return undefined;
    } catch {
      return phrase;
    } finally {
      clearTimeout(timer);
    }
  }

  return () => {
    if (!asking || Date.now() - askedAt > FRESH_MS) {
      askedAt = Date.now();
      asking = probe();
    }
    return asking;
  };
}

/** Returns the next version: microseconds since 1970, and higher than every version before, whatever the wall clock does. */
export type VersionClock = () => number;

/**
 * Versions order changes (*last write wins*), and tell what came before a deletion. One process never returns the same
 * version twice. Between processes the wall clocks decide. Their resolution of a millisecond is enough: gathering and
 * Kafka's acknowledgement take longer, so a change sent after another was acknowledged has the higher version.
 */
export function createVersionClock(nowMs: () => number = Date.now): VersionClock {
  let last = 0;
  return () => {
    last = Math.max(last + 1, nowMs() * 1_000);
    return last;
  };
}

/** Gives versions: microseconds since 1970, each higher than the one before, whatever the wall clock does. */
export type VersionClock = () => number;

/**
 * Versions are what "last" means in *last write wins*, and what a deletion is compared with. One process never gives
 * the same twice. Of several processes the wall clocks decide; gathering and Kafka's acknowledgement take more than the
 * millisecond of its resolution, so a change sent after another was acknowledged has the higher version.
 */
export function createVersionClock(nowMs: () => number = Date.now): VersionClock {
  let last = 0;
  return () => {
    last = Math.max(last + 1, nowMs() * 1_000);
    return last;
  };
}

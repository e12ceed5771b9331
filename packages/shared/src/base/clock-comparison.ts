/** A reading of another clock. Times are in milliseconds since 1970. */
export interface ClockReading {
  /** When it was asked, by the clock of this machine. */
  readonly beforeMs: number;
  readonly tookMs: number;
  /** What it said. */
  readonly theirMs: number;
}

/**
 * Returns by how much the clock of this machine is ahead of another one at least, in milliseconds. The other one was read at some time
 * while the reading took: within that span the clocks agree.
 */
export function aheadOf({ beforeMs, tookMs, theirMs }: ClockReading): number {
  const afterMs = Math.ceil(beforeMs + tookMs);
  return theirMs < beforeMs ? beforeMs - theirMs : theirMs > afterMs ? afterMs - theirMs : 0;
}

/** The time of the last uuid in 4,096ths of a millisecond: what is in front of its random bits. */
let last = 0n;

/**
 * Returns a new UUIDv7 (RFC 9562) that is greater than the one before. While the clock is behind the last one, it counts up
 * from there.
 *
 * @param now in milliseconds since 1970
 */
export function uuidV7(now: number): string {
  const time = BigInt(now) << 12n;
  last = time > last ? time : last + 1n;
  const [random = 0n] = crypto.getRandomValues(new BigUint64Array(1));
  // The variant is the bits 10, and 62 random bits are behind it.
  const bits = (last << 64n) + (2n << 62n) + (random >> 2n);
  const digits = bits.toString(16).padStart(31, '0');
  return digits.replace(/(.{8})(.{4})(.{3})(.{4})/, '$1-$2-7$3-$4-');
}

const LINE_FEED = 0x0a;

/** Returns how many line feeds some bytes have. */
export function countLineFeeds(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}

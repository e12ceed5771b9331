/** A line that is not accepted, with the reason. */
export interface BadLine {
  readonly index: number;
  readonly reason: string;
}

/**
 * Finds the lines that are not accepted, by halving: `check` is told some of the lines and gives the reason why they
 * are not accepted together, or `undefined`. A bad line costs about log2 of the lines in checks.
 *
 * @throws what `check` throws
 */
export async function findBadLines<Line>(
  lines: readonly Line[],
  check: (lines: readonly Line[]) => Promise<string | undefined>,
): Promise<BadLine[]> {
  const bad: BadLine[] = [];

  async function search(from: number, to: number): Promise<void> {
    if (from === to) return;
    const reason = await check(lines.slice(from, to));
    if (reason === undefined) return;
    if (to - from === 1) {
      bad.push({ index: from, reason });
      return;
    }
    const middle = Math.floor((from + to) / 2);
    await search(from, middle);
    await search(middle, to);
  }

  await search(0, lines.length);
  return bad;
}

/**
 * Returns which rights an account lacks: none in one question, which is what there mostly is.
 *
 * @param has whether it has all of some, as CHECK GRANT says
 * @throws what `has` throws
 */
export async function missingOf(
  has: (some: readonly string[]) => Promise<boolean>,
  rights: readonly string[],
): Promise<readonly string[]> {
  if (rights.length === 0 || (await has(rights))) return [];
  const missing: string[] = [];
  for (const right of rights) if (!(await has([right]))) missing.push(right);
  return missing;
}

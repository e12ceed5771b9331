import { PROBLEMS } from '@sluice/shared/http/problem';
import { LIMIT_GROUPS, type Limit } from './limits.ts';

/** The comments around the part of docs/guide/api.md that {@link limitsDocument} writes. */
const BEGIN = '<!-- limits: npm run hostile -- --write-limits -->';
const END = '<!-- end of limits -->';

/** Replaces the lists of limits in a document. @throws {Error} when the document has no place for them */
export function withLimits(document: string): string {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the document has no "${BEGIN}" before "${END}"`);
  return `${document.slice(0, begin)}${BEGIN}\n\n${limitsDocument()}\n${document.slice(end)}`;
}

/** Returns a list of limits for each group, in Markdown. */
function limitsDocument(): string {
  return Object.entries(LIMIT_GROUPS)
    .map(([group, limits]) => `**${group}**\n\n${Object.values<Limit>(limits).map(lineOf).join('\n')}\n`)
    .join('\n');
}

function lineOf({ title, max, unit, variable, beyond }: Limit): string {
  const setBy = variable === undefined ? '' : ` (\`${variable}\`)`;
  return `- ${title}: ${amount(max, unit)}${setBy}${consequenceOf(beyond)}`;
}

/** What happens beyond a limit; nothing for the usual refusal, which the document names once. */
function consequenceOf(beyond: Limit['beyond']): string {
  if (beyond === 'invalid_request') return '';
  return beyond in PROBLEMS ? `; \`${PROBLEMS[beyond as keyof typeof PROBLEMS]} ${beyond}\`` : `; ${beyond}`;
}

const NUMBER = new Intl.NumberFormat('en');

/** Writes bytes with the largest unit in which they are a whole number. */
function amount(max: number, unit: Limit['unit']): string {
  if (!unit.startsWith('bytes')) return `${NUMBER.format(max)} ${unit}`.trim();
  const power = [3, 2, 1, 0].find((one) => max % 1_024 ** one === 0) ?? 0;
  return `${NUMBER.format(max / 1_024 ** power)} ${['bytes', 'KiB', 'MiB', 'GiB'][power]}${unit.slice('bytes'.length)}`;
}

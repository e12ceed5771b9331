import { PROBLEMS } from '@sluice/shared/http/problem';
import { LIMIT_GROUPS, type Limit } from './limits.ts';

/** The comments around the part of docs/guide/api.md that {@link limitsDocument} writes. */
const BEGIN = '<!-- limits: npm run hostile -- --write-limits -->';
const END = '<!-- end of limits -->';

/** Replaces the tables of limits in a document. @throws {Error} when the document has no place for them */
export function withLimits(document: string): string {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the document has no "${BEGIN}" before "${END}"`);
  return `${document.slice(0, begin)}${BEGIN}\n\n${limitsDocument()}\n${document.slice(end)}`;
}

/** Returns a table of limits for each group, in Markdown. */
function limitsDocument(): string {
  return Object.entries(LIMIT_GROUPS)
    .map(([group, limits]) => `**${group}**\n\n${table(Object.values<Limit>(limits))}\n`)
    .join('\n');
}

function table(limits: readonly Limit[]): string {
  const rows = [['what', 'limit', 'set by', 'beyond it'], ...limits.map(rowOf)];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`);
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}

function rowOf({ title, max, unit, variable, beyond }: Limit): string[] {
  const consequence = beyond in PROBLEMS ? `\`${PROBLEMS[beyond as keyof typeof PROBLEMS]} ${beyond}\`` : beyond;
  return [title, amount(max, unit), variable === undefined ? '' : `\`${variable}\``, consequence];
}

const NUMBER = new Intl.NumberFormat('en');

/** Writes bytes with the largest unit in which they are a whole number. */
function amount(max: number, unit: Limit['unit']): string {
  if (!unit.startsWith('bytes')) return `${NUMBER.format(max)} ${unit}`.trim();
  const power = [3, 2, 1, 0].find((one) => max % 1_024 ** one === 0) ?? 0;
  return `${NUMBER.format(max / 1_024 ** power)} ${['bytes', 'KiB', 'MiB', 'GiB'][power]}${unit.slice('bytes'.length)}`;
}

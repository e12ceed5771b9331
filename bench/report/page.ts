import { readFile, writeFile } from 'node:fs/promises';
import { type Benchmark, type Figure, meetsBar } from './benchmark.ts';
import { type BenchResult, readResults } from './result.ts';

const PAGE = new URL('../../docs/design/performance.md', import.meta.url);

const INTRODUCTION = `<!-- Written by \`npm run bench\` from bench/results. Do not edit it: the texts are in bench. -->

# Performance

Each table has the figures of the last run of a benchmark, with its date, its commit and its machine.
\`npm run bench -- NAME\` runs a benchmark on local engines, with the services as processes of their own, and writes
\`bench/results/NAME.json\` and this page. It takes minutes, and needs Linux. \`npm run bench -- --help\` lists them.

**How to read the figures**

- A figure is the median of the rounds; the file has the lowest and the highest as well.
- The bar of a figure stands in parentheses. A figure in **bold** misses its bar.
- Compare ratios, which were measured in turn in one run. Times depend on the machine, and on what else it does: each
  table says how many cores other processes used meanwhile, and how many the host withheld. Where these are more than a
  few hundredths, the machine was shared, and times are longer than on a quiet one. CPU times vary less.
- A run ends by comparing what was accepted with what is stored. Unless each event is stored exactly once, the run is
  void and writes nothing; only the comparison with other pipelines counts what they lose and double.
`;

/** Writes docs/design/performance.md from the results, and the pictures beside it. */
export async function writePage(benchmarks: readonly Benchmark[]): Promise<void> {
  const results = await readResults();
  await writeFile(PAGE, pageOf(benchmarks, results));
  for (const [file, content] of picturesOf(benchmarks, results)) await writeFile(new URL(file, PAGE), content);
}

/** Draws the pictures of the page, by the names of their files. */
export function picturesOf(
  benchmarks: readonly Benchmark[],
  results: ReadonlyMap<string, BenchResult>,
): ReadonlyMap<string, string> {
  const pictures = benchmarks.flatMap(({ name, picture }) => {
    const result = results.get(name);
    return picture && result ? [[picture.file, picture.draw(result.figures, picture.description)] as const] : [];
  });
  return new Map(pictures);
}

export async function readPicture(file: string): Promise<string> {
  return await readFile(new URL(file, PAGE), 'utf8');
}

export async function readPage(): Promise<string> {
  return await readFile(PAGE, 'utf8');
}

/** Makes the page: a section for each benchmark. */
export function pageOf(benchmarks: readonly Benchmark[], results: ReadonlyMap<string, BenchResult>): string {
  const sections = benchmarks.map((benchmark) => sectionOf(benchmark, results.get(benchmark.name)));
  return [INTRODUCTION, ...sections].join('\n');
}

export function sectionOf({ name, title, method, picture }: Benchmark, result: BenchResult | undefined): string {
  if (!result) return `## ${title}\n\n${method}\n\n_Not measured yet: \`npm run bench -- ${name}\`._\n`;
  const { date, commit, machine, otherWork, figures } = result;
  const withBar = figures.filter(({ bar }) => bar !== undefined);
  const sizes = Object.entries(result.size).map(([what, count]) => `${formatNumber(count)} ${what}`);
  const facts = [
    `\`${name}\` with ${sizes.join(' and ')}, ${date.slice(0, 16).replace('T', ' ')} UTC, commit ${commit}`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Node.js ${machine.node.replace('v', '')}`,
    `other processes used ${formatNumber(otherWork.otherProcesses)} cores meanwhile, the host withheld ${formatNumber(otherWork.stolen)}`,
    ...(withBar.length > 0 ? [`${withBar.filter(meetsBar).length} of ${withBar.length} bars are met`] : []),
  ];
  const drawn = picture ? `![${picture.description}](${picture.file})\n\n` : '';
  return `## ${title}\n\n${method}\n\n_${facts.join('; ')}._\n\n${drawn}${tablesOf(figures)}\n`;
}

function tablesOf(figures: readonly Figure[]): string {
  const tables = [...Map.groupBy(figures, ({ table }) => table)];
  return tables
    .map(([heading, ofTable]) => `${heading === undefined ? '' : `### ${heading}\n\n`}${tableOf(ofTable)}`)
    .join('\n\n');
}

/** A table in Markdown, with rows and columns in the order in which they first appear. */
function tableOf(figures: readonly Figure[]): string {
  const columns = [...new Set(figures.map(({ column }) => column))];
  const rows = [...Map.groupBy(figures, ({ row }) => row)];
  const lines = rows.map(([row, cells]) => [
    row,
    ...columns.map((column) => cellOf(cells.find((cell) => cell.column === column))),
  ]);
  return alignedTable(['', ...columns], lines);
}

function alignedTable(header: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = header.map((_, column) => Math.max(3, ...[header, ...lines].map((line) => line[column]?.length ?? 0)));
  const written = (line: readonly string[]) =>
    `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = widths.map((width) => '-'.repeat(width));
  return [header, rule, ...lines].map(written).join('\n');
}

function cellOf(figure: Figure | undefined): string {
  if (!figure) return '';
  const { value, unit, bar, absent } = figure;
  if (absent !== undefined) return absent;
  const text = `${formatNumber(value)} ${unit}`.trimEnd();
  if (!bar) return text;
  const limit = 'atMost' in bar ? `≤ ${formatNumber(bar.atMost)}` : `≥ ${formatNumber(bar.atLeast)}`;
  return `${meetsBar(figure) ? text : `**${text}**`} (${limit})`;
}

function formatNumber(value: number): string {
  const size = Math.abs(value);
  const maximumFractionDigits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString('en', { maximumFractionDigits });
}

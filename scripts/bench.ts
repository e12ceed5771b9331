// npm run bench: loads the real services, or the writer's own code, on real local engines, and measures throughput, latency
// and CPU time. docs/design/performance.md has the figures.
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { profile } from '../bench/benchmarks/profile.ts';
import { BENCHMARKS } from '../bench/benchmarks.ts';
import { writePage } from '../bench/report/page.ts';
import { runBenchmark } from '../bench/report/run.ts';
import { checkOutVersion } from '../tests/kit/other-version.ts';

const PROFILE_SIZE = { seconds: 30 };

const NAME = 'npm run bench --';

const USAGE = `Usage: ${NAME} BENCHMARK [SIZE]…   runs a benchmark, writes its result to bench/results, and writes the page
       ${NAME} report              writes the page, docs/design/performance.md, from bench/results
       ${NAME} profile [SECONDS]   prints where the CPU time of ingest-api, writer and ClickHouse goes under load
                                          (default ${PROFILE_SIZE.seconds} seconds), and writes the profiles to .bench/profiles

Options:

  --against COMMIT   measures the services of another commit in turn with these (${BENCHMARKS.filter(
    ({ comparesVersions }) => comparesVersions,
  )
    .map((one) => one.name)
    .join(', ')})
${BENCHMARKS.map(({ name, parts }) => (parts ? `  --only PARTS       measures only some parts of ${name}: ${parts.join(',')}\n` : '')).join('')}
Benchmarks, with their default sizes:

${BENCHMARKS.map(({ name, size, title }) => `  ${`${name} ${sizeText(size)}`.padEnd(52)}${title}`).join('\n')}`;

function sizeText(size: Readonly<Record<string, number>>): string {
  return Object.entries(size)
    .map(([what, count]) => `[${what}=${count}]`)
    .join(' ');
}

/** Reads sizes from the command line, in the order of the default ones. */
function readSize(
  defaults: Readonly<Record<string, number>>,
  texts: readonly string[],
): Readonly<Record<string, number>> {
  const entries = Object.entries(defaults);
  if (texts.length > entries.length) throw new ArgumentsError(`too many arguments: only ${sizeText(defaults)}`);
  return Object.fromEntries(
    entries.map(([what, count], index) => {
      const number = Number(texts[index] ?? count);
      if (!Number.isInteger(number) || number < 1) throw new ArgumentsError(`${what} must be a positive integer`);
      return [what, number];
    }),
  );
}

async function main(): Promise<number> {
  const { values, positionals } = parseArguments({
    allowPositionals: true,
    options: { help: { type: 'boolean' }, against: { type: 'string' }, only: { type: 'string' } },
  } as const);
  const [name, ...sizes] = positionals;
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (name === 'report') {
    await writePage(BENCHMARKS);
    return 0;
  }
  const benchmark = BENCHMARKS.find((one) => one.name === name);
  if (!benchmark && name !== 'profile') throw new ArgumentsError(`there is no benchmark "${name ?? ''}"`);
  const size = readSize(benchmark?.size ?? PROFILE_SIZE, sizes);
  const { against } = values;
  const only = values.only?.split(',');
  if (against !== undefined && !benchmark?.comparesVersions) {
    throw new ArgumentsError(`${name} measures no other version: there is no --against`);
  }
  const unknown = only?.find((part) => !benchmark?.parts?.includes(part));
  if (unknown !== undefined) throw new ArgumentsError(`${name} has no part "${unknown}"`);
  if (process.platform !== 'linux') {
    console.error('The benchmarks need Linux: they read CPU time from /proc.');
    return 2;
  }
  const other =
    against === undefined ? undefined : { commit: against.slice(0, 7), checkout: await checkOutVersion(against) };
  if (benchmark) await runBenchmark(benchmark, size, BENCHMARKS, { other, only });
  else await profile(size['seconds'] ?? PROFILE_SIZE.seconds);
  return 0;
}

process.exitCode = await runCommand(NAME, main);

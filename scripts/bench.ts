// npm run bench: loads the real services, or the writer's own code, on real local engines, and prints throughput, latency
// and CPU time. docs/design/performance.md explains the figures.
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/command-line';
import { benchDashboards } from '../bench/dashboards.ts';
import { benchExactness } from '../bench/exactness.ts';
import { benchExport } from '../bench/export.ts';
import { benchHistory } from '../bench/history.ts';
import { benchIngest } from '../bench/ingest.ts';
import { benchLayouts } from '../bench/layouts.ts';
import { benchPipeline } from '../bench/pipeline.ts';
import { benchProfile } from '../bench/profile.ts';
import { benchQuery } from '../bench/query.ts';
import { benchScale } from '../bench/scale.ts';

interface Options {
  readonly rounds: number;
  readonly events: number;
  readonly quick: boolean;
  readonly save: boolean;
}

const BENCHMARKS: Readonly<Record<string, (options: Options) => Promise<boolean>>> = {
  dashboards: ({ rounds, events }) => benchDashboards(rounds, events),
  exactness: ({ rounds }) => benchExactness(rounds),
  export: ({ rounds, events }) => benchExport(rounds, events),
  history: ({ rounds }) => benchHistory(rounds),
  ingest: ({ rounds }) => benchIngest(rounds),
  layouts: ({ rounds, events }) => benchLayouts(rounds, events),
  pipeline: (options) => benchPipeline(options),
  profile: ({ rounds }) => benchProfile(rounds),
  query: ({ rounds, events }) => benchQuery(rounds, events),
  scale: ({ rounds, events }) => benchScale(rounds, events),
};
const ROUNDS = { whole: 7, quick: 2 };
const EVENTS_DEFAULT = 10_000_000;

const NAME = 'npm run bench --';
const USAGE = `Usage: ${NAME} exactness|history|ingest|pipeline|profile [rounds]
       ${NAME} dashboards|export|layouts|query|scale [rounds] [events]

Loads the real services, or the writer's own code, on real local engines. docs/design/performance.md explains the figures.

  rounds    how often each figure is measured (default ${ROUNDS.whole})
  events    how many events are stored first (default ${EVENTS_DEFAULT})
  --quick   pipeline: in three minutes, with ${ROUNDS.quick} short rounds
  --save    pipeline: writes the figures to bench/results`;

function readPositive(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new ArgumentsError(`${name} must be a positive integer`);
  return number;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArguments({
    allowPositionals: true,
    options: { help: { type: 'boolean' }, quick: { type: 'boolean' }, save: { type: 'boolean' } },
  } as const);
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const { quick = false, save = false } = values;
  const [name = '', rounds = String(quick ? ROUNDS.quick : ROUNDS.whole), events = String(EVENTS_DEFAULT)] =
    positionals;
  const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined;
  if (!benchmark) throw new ArgumentsError(`there is no benchmark "${name}"`);
  const options = { rounds: readPositive('rounds', rounds), events: readPositive('events', events), quick, save };
  if (process.platform !== 'linux') {
    console.error('The benchmarks need Linux: they read CPU time from /proc.');
    return 2;
  }
  return (await benchmark(options)) ? 0 : 1;
}

process.exitCode = await runCommand(NAME, main);

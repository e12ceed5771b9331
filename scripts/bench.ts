// npm run bench: loads the real services, or the writer's own code, on real local engines, and prints throughput, latency
// and CPU time. docs/performance.md explains the figures.
import { benchExactness } from '../bench/exactness.ts';
import { benchHistory } from '../bench/history.ts';
import { benchIngest } from '../bench/ingest.ts';
import { benchLayouts } from '../bench/layouts.ts';
import { benchPipeline } from '../bench/pipeline.ts';
import { benchQuery } from '../bench/query.ts';
import { benchScale } from '../bench/scale.ts';

const BENCHMARKS = {
  exactness: benchExactness,
  history: benchHistory,
  ingest: benchIngest,
  layouts: benchLayouts,
  pipeline: benchPipeline,
  query: benchQuery,
  scale: benchScale,
};
const EVENTS_DEFAULT = 10_000_000;

const [name = '', roundsText = '7', eventsText = String(EVENTS_DEFAULT)] = process.argv.slice(2);
const [rounds, events] = [Number(roundsText), Number(eventsText)];
if (!Object.hasOwn(BENCHMARKS, name) || ![rounds, events].every((number) => Number.isInteger(number) && number > 0)) {
  console.error('Usage: npm run bench -- exactness|history|ingest|pipeline [rounds]');
  console.error('       npm run bench -- layouts|query|scale [rounds] [events]');
  process.exit(2);
}
if (process.platform !== 'linux') {
  console.error('The benchmarks need Linux: they read CPU time from /proc.');
  process.exit(2);
}
process.exitCode = (await BENCHMARKS[name as keyof typeof BENCHMARKS](rounds, events)) ? 0 : 1;

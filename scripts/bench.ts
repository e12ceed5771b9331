// npm run bench -- exactness|history|ingest|pipeline [rounds]: loads the real services, or the writer's own code, over
// real local engines and prints what they managed and what it cost; docs/performance.md explains the figures.
import { benchExactness } from '../bench/exactness.ts';
import { benchHistory } from '../bench/history.ts';
import { benchIngest } from '../bench/ingest.ts';
import { benchPipeline } from '../bench/pipeline.ts';

const BENCHMARKS = { exactness: benchExactness, history: benchHistory, ingest: benchIngest, pipeline: benchPipeline };

const [name = '', roundsText = '7'] = process.argv.slice(2);
const rounds = Number(roundsText);
if (!Object.hasOwn(BENCHMARKS, name) || !Number.isInteger(rounds) || rounds < 1) {
  console.error('npm run bench -- exactness|history|ingest|pipeline [rounds]');
  process.exit(2);
}
if (process.platform !== 'linux') {
  console.error('The benchmarks read CPU time from /proc, so they need Linux.');
  process.exit(2);
}
process.exitCode = (await BENCHMARKS[name as keyof typeof BENCHMARKS](rounds)) ? 0 : 1;

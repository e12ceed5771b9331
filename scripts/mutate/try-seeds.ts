// Runs simulated schedules in a working copy until one fails, or there were enough, and prints what came of it as JSON.
// mutate.ts starts it.
import { KINDS } from '../../tests/simulation/kinds.ts';
import { runSchedule } from '../../tests/simulation/world/run-schedule.ts';
import type { SimulationResult } from './simulation-run.ts';

const [simulator, secondsText = '', seedText = '', schedulesText = ''] = process.argv.slice(2);
const kind = KINDS.find(({ name }) => name === simulator);
if (!kind) throw new Error(`there is no simulator "${simulator}"`);

/** Returns the CPU time of this process in seconds: other processes of the machine do not matter. */
function secondsTaken(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
}

const result: SimulationResult = { seed: Number(seedText), violation: undefined, seconds: 0 };
const end = result.seed + Number(schedulesText);
for (; result.seed < end && secondsTaken() < Number(secondsText); result.seed += 1) {
  result.violation = (await runSchedule(kind, result.seed)).violation;
  if (result.violation !== undefined) break;
}
result.seconds = secondsTaken();
process.stdout.write(JSON.stringify(result), () => process.exit(0));

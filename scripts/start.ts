// npm start: runs the whole system on this machine, in the foreground. `npm start -- --help` shows its usage.
import { join } from 'node:path';
import { ArgumentsError, parseArguments } from '@sluice/shared/config/command-line';
import { buildConsole } from '../packages/console/scripts/build.ts';
import { lockDataFolder, unlockDataFolder } from './start/data-folder.ts';
import { createOutput } from './start/output.ts';
import { findObstacles } from './start/preflight.ts';
import { readSettings, START_HELP } from './start/settings.ts';
import { createSupervisor } from './start/supervisor.ts';
import { describeSystem } from './start/system.ts';
import { welcome } from './start/welcome.ts';

// One Ctrl-C arrives up to three times: from the terminal, and from npm and run.mjs, which pass it on.
const SAME_SIGNAL_MS = 1000;
const EXIT_CODE_KILLED = 130;
const EXIT_CODE_ARGUMENTS = 2;

const root = join(import.meta.dirname, '..');
const { engines: onlyEngines } = readArguments();
const env = process.env;
const { settings, faults } = readSettings(env, root);
if (faults.length > 0) refuse(faults);
const heldBy = await lockDataFolder(settings.dataDir, 'scripts/start.ts');
if (heldBy !== undefined) {
  refuse([
    `Another run (pid ${heldBy}) uses the data folder ${settings.dataDir}. Stop it, or set SLUICE_DATA_DIR to another folder.`,
  ]);
}
const obstacles = await findObstacles(settings);
if (obstacles.length > 0) {
  await unlockDataFolder(settings.dataDir);
  refuse(obstacles);
}

const isTerminal = process.stdout.isTTY === true;
const output = createOutput(process.stdout, { isTerminal, logDir: settings.logDir, logs: settings.logs });
output.say(`Starting Sluice. Its data is in ${settings.dataDir}, the logs in ${settings.logDir}`);
const context = { baseEnv: env, onLine: output.serviceLine, report: output.say };
const [{ stages, devKey }] = await Promise.all([describeSystem(settings, root, context), buildConsole()]);
const supervisor = createSupervisor({ stages: onlyEngines ? stages.slice(0, 1) : stages, report: output.say });
let firstSignalAt: number | undefined;

async function stop(reason: string): Promise<void> {
  const now = performance.now();
  firstSignalAt ??= now;
  if (now - firstSignalAt > SAME_SIGNAL_MS) {
    output.say('Stopping at once');
    supervisor.killNow();
    process.exit(EXIT_CODE_KILLED);
  }
  if (now > firstSignalAt) return;
  output.say(`${reason}; stopping the services, then the engines`);
  await supervisor.stop();
  await unlockDataFolder(settings.dataDir);
  output.say('Stopped');
  process.exit(0);
}

process.on('SIGINT', () => stop('Interrupted'));
process.on('SIGTERM', () => stop('SIGTERM received'));
process.on('SIGHUP', () => stop('The terminal was closed'));
process.once('disconnect', () => stop('The command that started this run has ended'));

try {
  await supervisor.start();
  const isReady = onlyEngines ? 'Kafka and ClickHouse are ready. Ctrl-C stops them.' : welcome(settings, devKey);
  if (firstSignalAt === undefined) output.say(isReady);
} catch (error) {
  await unlockDataFolder(settings.dataDir);
  refuse([`Sluice could not be started. ${(error as Error).message}`]);
}

function readArguments(): { readonly engines: boolean } {
  try {
    const { values } = parseArguments({
      options: { help: { type: 'boolean', short: 'h' }, engines: { type: 'boolean', default: false } },
    });
    if (!values.help) return values;
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    refuse([error.message, 'npm start -- --help shows its usage.'], EXIT_CODE_ARGUMENTS);
  }
  console.log(START_HELP);
  process.exit(0);
}

function refuse(sentences: readonly string[], exitCode = 1): never {
  for (const sentence of sentences) console.error(sentence);
  process.exit(exitCode);
}

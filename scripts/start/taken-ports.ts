import { basename } from 'node:path';
import { findPortHolder } from '@sluice/local-stack/port-holder';
import { findFreePorts, isPortFree } from '@sluice/local-stack/ports';
import { PORT_NAMES, type PortName, portVariable, type Settings } from './settings.ts';

/** Ports are offered at this distance from those that are taken: 5000 and 5001 for 4000 and 4001. */
const STEP = 1_000;
const PORT_MAX = 65_535;
const COMMAND_LENGTH_MAX = 100;
const COMMAND_START_LENGTH = 30;

/**
 * Names the ports of `npm start` that are taken, each with the process that holds it where that can be known. The last
 * sentence is a command with free ports.
 *
 * @returns nothing when all ports are free.
 */
export async function checkPorts(settings: Settings): Promise<string[]> {
  const needed = neededPorts(settings);
  const free = await Promise.all(needed.map(([, port]) => isPortFree(port)));
  const taken = needed.filter((_port, index) => !free[index]);
  if (taken.length === 0) return [];
  const holders = await Promise.all(taken.map(([, port]) => describeTaken(port)));
  const variables = (await findReplacements(taken, settings)).map(([name, port]) => `${portVariable(name)}=${port}`);
  return [...holders, `Stop what holds them, or start on free ports: ${variables.join(' ')} npm start`];
}

/** Without the ports of engines that run elsewhere, and of services that are not started. */
function neededPorts({ ports, externalKafka, externalClickHouse }: Settings): [PortName, number][] {
  const external: Partial<Record<PortName, string | undefined>> = {
    kafka: externalKafka,
    clickhouse: externalClickHouse,
  };
  return PORT_NAMES.filter((name) => !external[name]).flatMap((name): [PortName, number][] => {
    const port = ports[name];
    return port === undefined ? [] : [[name, port]];
  });
}

async function describeTaken(port: number): Promise<string> {
  const holder = await findPortHolder(port);
  if (!holder) return `Port ${port} is taken by an unknown process (perhaps of another user).`;
  return `Port ${port} is taken by process ${holder.pid} (${shorten(holder.command)}).`;
}

/** A command line without the folder of its program, and without its middle if it is long: the script comes last. */
function shorten(commandLine: string): string {
  const [program = '', ...args] = commandLine.split(' ');
  const text = [basename(program), ...args].join(' ');
  if (text.length <= COMMAND_LENGTH_MAX) return text;
  const endLength = COMMAND_LENGTH_MAX - COMMAND_START_LENGTH;
  return `${text.slice(0, COMMAND_START_LENGTH)}…${text.slice(-endLength)}`;
}

/** A free port for each name, none of them used by the other settings. */
async function findReplacements(
  taken: readonly (readonly [PortName, number])[],
  { ports }: Settings,
): Promise<[PortName, number][]> {
  const used = new Set<number>(Object.values(ports).filter((port) => port !== undefined));
  const found: [PortName, number][] = [];
  for (const [name, from] of taken) {
    const port = await findReplacement(from, used);
    used.add(port);
    found.push([name, port]);
  }
  return found;
}

async function findReplacement(taken: number, used: ReadonlySet<number>): Promise<number> {
  for (let port = taken + STEP; port <= PORT_MAX; port += STEP) {
    if (!used.has(port) && (await isPortFree(port))) return port;
  }
  const [port = 0] = await findFreePorts(1);
  return port;
}

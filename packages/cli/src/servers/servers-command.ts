import { resolve } from 'node:path';
import { type ConfiguredServer, configured, connectTo, serversConfig } from '@sluice/servers/state/connected-server';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ConfigError } from '@sluice/shared/config';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { printable } from '@sluice/shared/text/printable';
import { fillingCommand, readIdentity, recordState } from '@sluice/storage/clickhouse/identity';
import type { Command, Environment } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { parseCommand } from '../command/parse-command.ts';
import { processTerminal, type Terminal } from '../command/terminal.ts';
import { unreachable } from '../command/unreachable.ts';
import { runCheck } from './check-file.ts';
import { findServer, loadAllServers, refuseReplicas } from './chosen-server.ts';
import { COMPARE_HELP, parseCompare, runCompareCommand } from './compare-command.ts';
import { COPY_HELP, parseCopy, runCopyCommand } from './copy-command.ts';
import { runStatus } from './status.ts';

/** What is done with servers that are fed each for itself. */
const OF_MIRRORS: readonly string[] = ['copy', 'compare', 'accept'];

const COMMANDS = 'status, check FILE, copy --from NAME --to NAME, compare NAME NAME, or accept NAME';

/** Shows, checks and compares the ClickHouse servers of a file, and fills one of them, with the environment of a writer. */
export const serversCommand: Command = {
  help,
  async run(args, { env, cwd }) {
    const local = await withLocalSystem(env);
    if (OF_MIRRORS.includes(args[0] ?? ''))
      refuseReplicas(local, `servers ${args[0]}`, 'They copy their rows themselves: see system.replicas.');
    switch (args[0]) {
      case 'status': {
        parseCommand(args, { commands: { status: 'none' }, texts: {}, flags: [], usage: 'status takes no arguments.' });
        return await runStatus(loadServers(local), processTerminal.print);
      }
      case 'check': {
        const usage = 'check needs a FILE.';
        const { operands } = parseCommand(args, { commands: { check: 'one' }, texts: {}, flags: [], usage });
        return await runCheck(resolve(cwd, operands[0] ?? ''), local, processTerminal.print);
      }
      case 'copy':
        return await runCopyCommand(parseCopy(args, loadServers(local)), processTerminal);
      case 'compare':
        return await runCompareCommand(parseCompare(args, loadServers(local)), processTerminal);
      case 'accept':
        return await accept(args, local);
      default:
        parseCommand(args, { commands: {}, texts: {}, flags: [], usage: `Use ${COMMANDS}.` });
        throw new ArgumentsError(`Use ${COMMANDS}.`);
    }
  },
};

async function accept(args: readonly string[], env: Environment): Promise<number> {
  const usage = 'accept needs the NAME of a server, and takes no option but --yes.';
  const { operands, flags } = parseCommand(args, { commands: { accept: 'one' }, texts: {}, flags: ['yes'], usage });
  const [name = ''] = operands;
  const found = findServer('NAME', name, loadServers(env));
  await using client = connectTo(found);
  try {
    return await runAccept(name, client, flags.yes, processTerminal);
  } catch (error) {
    console.error(unreachable('ClickHouse', error, found.config));
    return 1;
  }
}

/** @throws {ConfigError} also without a file of servers */
function loadServers(env: Environment): readonly ConfiguredServer[] {
  const servers = configured(loadAllServers(serversConfig, env));
  if (servers.length > 0) return servers;
  throw new ConfigError(['CLICKHOUSE_SERVERS_FILE: is required: the file that names the ClickHouse servers']);
}

function help(name: string): string {
  return `Usage: ${name} COMMAND

Shows, checks, fills and compares the ClickHouse servers of CLICKHOUSE_SERVERS_FILE, with the environment of a writer:
docs/operate/servers-commands.md.

  status                shows how each server is, and says what is wrong
  check FILE            says what is wrong with a file before it is put in force. It changes nothing
${COPY_HELP}
${COMPARE_HELP}
  accept NAME [--yes]   says which messages an incomplete server lacks, asks whether these are gone for good, and lets it be
                        read as the others are

Exit codes: 0 done, or nothing is wrong; 1 not done, or something is wrong; 2 wrong arguments.`;
}

/**
 * Says what a server lacks, asks whether that is gone for good, and records that the server is complete. Returns the exit
 * code.
 *
 * @throws ClickHouse's errors
 */
async function runAccept(
  name: string,
  client: ClickHouseClient,
  yes: boolean,
  { print, confirm }: Terminal,
): Promise<number> {
  const identity = await readIdentity(client);
  if (identity?.state !== 'incomplete') {
    print(
      identity?.state === 'filling'
        ? `${name} is being filled: run "${fillingCommand(identity.detail)}" to its end.`
        : `${name} is not incomplete: there is nothing to accept.`,
    );
    return 1;
  }
  print(printable(`${name} is incomplete: ${identity.detail}`));
  print('If another server is complete, copy it: "sluice servers copy". Otherwise accept that this is gone for good.');
  if (!yes && !(await confirm('Accept? [y/N] '))) {
    print('nothing was changed');
    return 1;
  }
  await recordState(client, 'complete');
  print(`${name} is complete from now on, and is read as the others are`);
  return 0;
}

import { ConfigError } from '@sluice/shared/config';
import { ArgumentsError, runCommand } from '@sluice/shared/config/command-line';
import manifest from '../package.json' with { type: 'json' };
import type { Command, Environment } from './command/command.ts';

interface Entry {
  /** What the command does, in a line. */
  readonly summary: string;
  /** Imports the command when it is run: the image of a service holds the dependencies of its own commands only. */
  load(): Promise<Command>;
}

type CommandName =
  | 'doctor'
  | 'audit'
  | 'import'
  | 'export'
  | 'keys'
  | 'dead-letters'
  | 'writer'
  | 'migrations'
  | 'backup'
  | 'restore'
  | 'retention'
  | 'sql-account'
  | 'properties'
  | 'servers';

/** The commands of sluice, each of which is an npm script as well. */
const COMMANDS: Readonly<Record<CommandName, Entry>> = {
  doctor: {
    summary: 'tries what Sluice relies on in Kafka, ClickHouse and the services',
    load: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  },
  audit: {
    summary: 'compares the log with the database: where every accepted row is',
    load: async () => (await import('./audit/audit.ts')).auditCommand,
  },
  import: {
    summary: 'sends a file of submissions, or of calls that others have archived',
    load: async () => (await import('./import/import-command.ts')).importCommand,
  },
  export: {
    summary: 'writes all events that match to a file',
    load: async () => (await import('./export/export-command.ts')).exportCommand,
  },
  keys: {
    summary: 'creates, lists and revokes API keys',
    load: async () => (await import('./keys/keys-command.ts')).keysCommand,
  },
  'dead-letters': {
    summary: 'lists, shows and replays rows that could not be stored',
    load: async () => (await import('./dead-letters/dead-letters-command.ts')).deadLettersCommand,
  },
  writer: {
    summary: 'shows, halts, resumes and adds partitions that the writers store',
    load: async () => (await import('./writer/writer-command.ts')).writerCommand,
  },
  migrations: {
    summary: 'shows and applies the migrations of the database',
    load: async () => (await import('./migrations/migrations-command.ts')).migrationsCommand,
  },
  backup: {
    summary: 'makes a backup of the database while Sluice goes on',
    load: async () => (await import('./backup/backup-command.ts')).backupCommand,
  },
  restore: {
    summary: 'restores a backup, and rewinds the writers to its time',
    load: async () => (await import('./backup/restore-command.ts')).restoreCommand,
  },
  retention: {
    summary: 'shows and sets for how many days events are kept',
    load: async () => (await import('./retention/retention-command.ts')).retentionCommand,
  },
  'sql-account': {
    summary: "manages the accounts by which analysts' tools read a workspace",
    load: async () => (await import('./sql-account/sql-account-command.ts')).sqlAccountCommand,
  },
  properties: {
    summary: 'shows and declares which properties of events are fast',
    load: async () => (await import('./properties/properties-command.ts')).propertiesCommand,
  },
  servers: {
    summary: 'shows, checks and fills several ClickHouse servers',
    load: async () => (await import('./servers/servers-command.ts')).serversCommand,
  },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];

const HELP = `Usage: sluice COMMAND [options]

The commands for users and operators of Sluice. In a checkout, each is an npm script as well, which installs what is
missing first: npm run COMMAND -- [options].

${COMMAND_NAMES.map((name) => `  ${name.padEnd(14)} ${COMMANDS[name].summary}`).join('\n')}

  help COMMAND   shows how a command is used, as COMMAND --help does
  --help         shows this text
  --version      shows the version

Exit code 2 means that the arguments are wrong. The other exit codes are those of the command.`;

const CHOICES = `use one of ${COMMAND_NAMES.join(', ')}`;

/** Runs sluice, and returns its exit code. `args` are the command and its arguments. */
export async function runSluice(args: readonly string[], env: Environment): Promise<number> {
  return await runCommand('sluice', async () => {
    const [first, ...rest] = args;
    switch (first) {
      case '--help':
      case '-h':
        return print(HELP);
      case '--version':
        return print(manifest.version);
      case 'help':
        if (rest.length > 1) throw new ArgumentsError('help shows how one command is used.');
        return rest.length === 0 ? print(HELP) : await runNamed(parseName(rest[0]), ['--help'], env);
      default:
        return await runNamed(parseName(first), rest, env);
    }
  });
}

function parseName(text: string | undefined): CommandName {
  const found = COMMAND_NAMES.find((name) => name === text);
  if (found) return found;
  if (text === undefined) throw new ArgumentsError(`A COMMAND is needed; ${CHOICES}.`);
  throw new ArgumentsError(
    text.startsWith('-') ? `Unknown option "${text}".` : `Unknown command "${text}"; ${CHOICES}.`,
  );
}

async function runNamed(command: CommandName, args: readonly string[], env: Environment): Promise<number> {
  const { name, cwd } = callerOf(command, env);
  const loaded = await load(command);
  if (!loaded) return 1;
  if (asksForHelp(args)) return print(loaded.help(name));
  return await runCommand(name, async () => {
    try {
      return await loaded.run(args, { env, cwd });
    } catch (error) {
      if (error instanceof ConfigError) {
        console.error(error.message);
        return 2;
      }
      const { syscall, message } = error as NodeJS.ErrnoException;
      throw syscall === undefined ? error : new ArgumentsError(message, { cause: error });
    }
  });
}

/** Returns the code of a command; `undefined`, after it has said so, when it is not installed here. */
async function load(command: CommandName): Promise<Command | undefined> {
  try {
    return await COMMANDS[command].load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND') throw error;
    console.error(`The command ${command} is not installed here: ${message}.`);
    return undefined;
  }
}

/** Whether there is `--help` among the options. Behind `--` there are none. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === '--help' || arg === '-h');
}

function print(text: string): number {
  console.log(text);
  return 0;
}

/** How a person ran a command. */
interface Caller {
  /** What they typed before the arguments: `npm run import --` or `sluice import`. */
  readonly name: string;
  /** The folder in which they typed it. */
  readonly cwd: string;
}

/** Returns how a command of this process was run. npm runs scripts in the folder of the project, and says so. */
function callerOf(command: CommandName, env: Environment, cwd: string = process.cwd()): Caller {
  if (env['npm_lifecycle_event'] !== command) return { name: `sluice ${command}`, cwd };
  return { name: `npm run ${command} --`, cwd: env['INIT_CWD'] ?? cwd };
}

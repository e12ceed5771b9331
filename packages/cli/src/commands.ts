import type { Command } from './command.ts';

interface Entry {
  /** What the command does, in a line. */
  readonly summary: string;
  /** Imports the command when it is run: the image of a service holds the dependencies of its own commands only. */
  load(): Promise<Command>;
}

export type CommandName =
  | 'import'
  | 'export'
  | 'keys'
  | 'dead-letters'
  | 'writer'
  | 'migrations'
  | 'backup'
  | 'restore'
  | 'retention'
  | 'servers';

/** The commands of sluice, each of which is an npm script as well. */
export const COMMANDS: Readonly<Record<CommandName, Entry>> = {
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
  servers: {
    summary: 'shows, checks and fills several ClickHouse servers',
    load: async () => (await import('./servers/servers-command.ts')).serversCommand,
  },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];

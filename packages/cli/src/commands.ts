import type { Command } from './command.ts';

interface Entry {
  /** What the command does, in a line. */
  readonly summary: string;
  /** Imports the command when it is run: the image of a service holds the dependencies of its own commands only. */
  load(): Promise<Command>;
}

export type CommandName = 'import' | 'export' | 'keys' | 'dead-letters' | 'writer' | 'retention';

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
    summary: 'shows, halts and resumes the partitions that the writers store',
    load: async () => (await import('./writer/writer-command.ts')).writerCommand,
  },
  retention: {
    summary: 'shows and sets for how many days events are kept',
    load: async () => (await import('./retention/retention-command.ts')).retentionCommand,
  },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];

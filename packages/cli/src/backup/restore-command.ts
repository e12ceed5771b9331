import { parseArguments, readArguments } from '@sluice/shared/command-line';
import { loadConfig } from '@sluice/shared/config';
import { nameOf } from '@sluice/writer/protocol/position';
import type { Command } from '../command.ts';
import { confirm } from '../confirm.ts';
import { withLocalSystem } from '../local-system.ts';
import { interruption } from '../transfer/interruption.ts';
import { backupConfig } from './config.ts';
import { clientOf, kafkaOf, reportFailure } from './connect.ts';
import { parsePlace } from './place.ts';
import { megabytes, ProgressLines, percentageOf } from './progress-lines.ts';
import { Restore, type RestorePlan } from './run-restore.ts';

const APPLICATION = 'sluice-restore';

/** Restores a backup, with the environment of a writer. */
export const restoreCommand: Command = {
  help,
  async run(args, { env, cwd }) {
    const { values } = parseArguments({
      args: [...args],
      options: { from: { type: 'string', default: '' }, yes: { type: 'boolean', default: false } },
    });
    const config = loadConfig(backupConfig, await withLocalSystem(env));
    const { place } = readArguments({ place: () => parsePlace('--from', values.from, config, cwd) });
    const server = clientOf(config, APPLICATION, 'default');
    const scratchOf = (database: string) => clientOf(config, APPLICATION, database);
    const signal = interruption();
    const restore = new Restore({ config, kafka: kafkaOf(config, APPLICATION), server, scratchOf, place, signal });
    const lines = new ProgressLines(console.log);
    try {
      const plan = await restore.plan();
      for (const line of describePlan(plan, place.name, config.CLICKHOUSE_DATABASE)) console.log(line);
      if (!values.yes && !(await confirm('Restore? [y/N] '))) {
        console.log('nothing was restored');
        return 1;
      }
      const { bytes, seconds, notRewound } = await restore.run(plan, ({ part, bytesRead, bytes: all }) =>
        lines.show(`${part}: ${megabytes(bytesRead)} of ${megabytes(all)}, ${percentageOf(bytesRead, all)}`),
      );
      console.log(`${config.CLICKHOUSE_DATABASE} is restored: ${megabytes(bytes)}, ${seconds.toFixed(1)} s.`);
      if (notRewound !== undefined) {
        console.log(`Kafka has not set the offsets of the group back (${notRewound}); the writers do when they start.`);
      }
      console.log(describeNext(plan));
      return 0;
    } catch (error) {
      const code = reportFailure(error, 'Nothing was restored', config);
      return signal.aborted ? 130 : code;
    } finally {
      await server.close();
    }
  },
};

function help(name: string): string {
  return `Usage: ${name} --from DIRECTORY|ADDRESS [--yes]

Restores a backup of "sluice backup". Stop the writers first; the other services may run. It checks the backup, the
writers and Kafka, says what will be replaced and what is missing, and asks for confirmation. The tables are restored
beside the present ones and exchanged at the end: a restore that fails or is interrupted changes nothing and can be
repeated.

Start the writers afterwards: they read everything since the backup from Kafka again, and store each row once.

  --from DIRECTORY|ADDRESS   as --to of "sluice backup"
  --yes                      restores without confirmation, also when Kafka no longer has all messages since the backup
  --help                     this text

Exit codes: 0 restored, 1 nothing was restored, 2 wrong arguments, 130 interrupted.`;
}

function describePlan({ manifest, logs, replaces }: RestorePlan, place: string, database: string): string[] {
  const { startedAt, sluiceVersion, migration } = manifest;
  return [
    `${place} is a backup of ${startedAt} UTC, made by Sluice ${sluiceVersion} (migration ${migration}).`,
    replaces
      ? `The database ${database} is replaced: ${replaces.rows} rows in ${replaces.tables} tables. What it has and neither the ` +
        'backup nor Kafka has is lost.'
      : `There is no data in the database ${database}.`,
    ...(replaces && replaces.foreign.length > 0
      ? [`These are not of Sluice, are in no backup, and are dropped: ${replaces.foreign.join(', ')}.`]
      : []),
    ...logs.gaps.map(({ gap, low, ...partition }) => {
      return `Missing: ${gap.detail}. ${nameOf(partition)} goes on at offset ${low}.`;
    }),
    logs.gaps.length === 0
      ? `Kafka has everything since the backup: ${logs.messages} messages.`
      : `Kafka does not have everything since the backup; what is missing is lost. It has ${logs.messages} messages.`,
  ];
}

function describeNext({ logs, replaces }: RestorePlan): string {
  const deletions = replaces?.hasDeletions
    ? 'the newest events are missing'
    : 'the newest events are missing, and users who were deleted since the backup are visible';
  return `Start the writers: they read ${logs.messages} messages from Kafka and store what is not stored yet. Until then ${deletions}.`;
}

import { parseArguments, readArguments } from '@sluice/shared/config/command-line';
import type { Command } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { interruption, megabytes, ProgressLines, percentageOf } from '../command/terminal.ts';
import { loadChosenServer, refuseShared } from '../servers/chosen-server.ts';
import { parseBackupLocation } from './backup-location.ts';
import { BACKUPS_OF_CLOUD, backupConfig } from './config.ts';
import { clientOf, reportFailure } from './connect.ts';
import { runBackup } from './run-backup.ts';

const APPLICATION = 'sluice-backup';

/** Makes a backup of the database, with the environment of a writer. */
export const backupCommand: Command = {
  help,
  async run(args, { env, cwd }) {
    const text = { type: 'string', default: '' } as const;
    const { values } = parseArguments({ args: [...args], options: { to: text, server: text } });
    refuseShared(env, 'backup', BACKUPS_OF_CLOUD);
    const { config, replicas } = loadChosenServer(backupConfig, await withLocalSystem(env), values.server);
    const { location } = readArguments({ location: () => parseBackupLocation('--to', values.to, config, cwd) });
    const client = clientOf(config, APPLICATION, config.CLICKHOUSE_DATABASE);
    const signal = interruption();
    const lines = new ProgressLines(console.log);
    const startedAt = performance.now();
    try {
      console.log(`Backing up ${config.CLICKHOUSE_DATABASE} to ${location.name}`);
      const { files, bytes } = await runBackup({
        ...{ client, isReplica: replicas !== undefined, groupId: config.KAFKA_GROUP_ID, location, signal },
        onProgress: ({ bytesWritten, bytesExpected }) =>
          lines.show(
            `${megabytes(bytesWritten)} of about ${megabytes(bytesExpected)}, ${percentageOf(bytesWritten, bytesExpected)}`,
          ),
        onWait: (waiting) =>
          lines.show(`the replica fetches what others have: ${waiting} entries of its queue are left`),
      });
      const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
      console.log(`The backup is complete: ${megabytes(bytes)} in ${files} files, ${seconds} s.`);
      return 0;
    } catch (error) {
      const code = reportFailure(error, 'There is no backup', config);
      return signal.aborted ? 130 : code;
    } finally {
      await client.close();
    }
  },
};

function help(name: string): string {
  return `Usage: ${name} --to DIRECTORY|ADDRESS [--server NAME]

Makes a backup of the whole database while Sluice goes on. "sluice restore" restores it. ClickHouse itself writes the
backup, and its configuration must allow the place (docs/operate/backup.md).

  --to DIRECTORY   a new directory on the machine of ClickHouse; of npm start, in the folder .sluice/backups
  --to ADDRESS     s3://BUCKET/PATH, or the https:// address of a bucket with a path. BACKUP_S3_ACCESS_KEY_ID and
                   BACKUP_S3_SECRET_ACCESS_KEY are the credentials; without them ClickHouse uses its own
  --server NAME    which ClickHouse server, where CLICKHOUSE_SERVERS_FILE names several; default CLICKHOUSE_SERVER. A backup
                   of one mirror, or of one replica of each range, is enough: it can be restored to each of them
  --help           this text

What is left of a backup that failed is no backup: remove it, or choose another place for the next one.

Exit codes: 0 the backup is complete, 1 it is not, 2 wrong arguments, 130 interrupted.`;
}

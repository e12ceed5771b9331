import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { parseArguments, readArguments } from '@sluice/shared/config/command-line';
import { describeRange } from '@sluice/shared/servers/partition-range';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { DatabaseOwner } from '@sluice/storage/clickhouse/own-database';
import { nameOf } from '@sluice/storage/protocol/position';
import type { Command } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { interruption, megabytes, ProgressLines, percentageOf, processTerminal } from '../command/terminal.ts';
import { loadAllServers, loadChosenServer, refuseShared } from '../servers/chosen-server.ts';
import { parseBackupLocation } from './backup-location.ts';
import { BACKUPS_OF_CLOUD, type BackupConfig, backupConfig } from './config.ts';
import { clientOf, kafkaOf, reportFailure } from './connect.ts';
import type { OtherServer } from './kept-rows.ts';
import { HalfReplaced, type RestoredReplica, RestoredReplicas } from './replicas.ts';
import { Restore, type RestorePlan } from './run-restore.ts';

const APPLICATION = 'sluice-restore';

const OF_REPLICAS =
  'Once the rows are restored and checked, the database is dropped at all replicas. From then on there is no way back: keep the backup, and ' +
  'run this to its end.';

/** Restores a backup, with the environment of a writer. */
export const restoreCommand: Command = {
  help,
  async run(args, { env, cwd }) {
    const text = { type: 'string', default: '' } as const;
    const { values } = parseArguments({
      args: [...args],
      options: { from: text, server: text, yes: { type: 'boolean', default: false } },
    });
    const local = await withLocalSystem(env, 'sluice');
    refuseShared(local, 'restore', BACKUPS_OF_CLOUD);
    const { config, server: own, replicas } = loadChosenServer(backupConfig, local, values.server);
    const { location } = readArguments({ location: () => parseBackupLocation('--from', values.from, config, cwd) });
    await using connections = new AsyncDisposableStack();
    const connect = (of: BackupConfig, database: string) =>
      connections.adopt(clientOf(of, APPLICATION, database), (client) => client.close());
    const server = connect(config, 'default');
    const all = own ? loadAllServers(backupConfig, local) : [];
    const others = own && othersOf([own, ...(replicas ?? [])], all, connect);
    const scratchOf = (database: string) => clientOf(config, APPLICATION, database);
    const { KAFKA_GROUP_ID: group } = config;
    // Replicas have no name in common.
    const owner = { group, server: replicas ? '' : (own?.name ?? ''), partitions: describeRange(own?.partitions) };
    const restored = replicas && own && replicasOf(config, own, replicas, connect);
    const signal = interruption();
    const kafka = kafkaOf(config, APPLICATION);
    const restore = new Restore({
      ...{ config, owner, others, kafka, server, scratchOf, location, signal },
      replicas: restored && new RestoredReplicas(restored, config.CLICKHOUSE_DATABASE),
    });
    const lines = new ProgressLines(console.log);
    try {
      const plan = await restore.plan();
      for (const line of describePlan(plan, location.name, config.CLICKHOUSE_DATABASE, owner)) console.log(line);
      if (restored) console.log(OF_REPLICAS);
      if (!values.yes && !(await processTerminal.confirm('Restore? [y/N] '))) {
        console.log('nothing was restored');
        return 1;
      }
      const { bytes, seconds, notRewound, away, late } = await restore.run(
        plan,
        ({ part, bytesRead, bytes: all }) =>
          lines.show(`${part}: ${megabytes(bytesRead)} of ${megabytes(all)}, ${percentageOf(bytesRead, all)}`),
        (line) => console.log(line),
      );
      console.log(`${config.CLICKHOUSE_DATABASE} is restored: ${megabytes(bytes)}, ${seconds.toFixed(1)} s.`);
      if (notRewound !== undefined) {
        console.log(`Kafka has not set the offsets of the group back (${notRewound}); the writers do when they start.`);
      }
      for (const name of away) console.log(`${name} does not answer: deletions that it alone has are not taken over.`);
      for (const name of late)
        console.log(`${name} does not say yet that it is complete: it does once it reaches the others.`);
      console.log(describeNext(plan, (others?.length ?? 0) > away.length));
      return 0;
    } catch (error) {
      const failed =
        error instanceof HalfReplaced
          ? 'The database was dropped, at some replicas at least, and is not restored to its end: run the same command again'
          : 'Nothing was restored';
      const code = reportFailure(error, failed, config);
      return signal.aborted ? 130 : code;
    }
  },
};

/** Returns the servers of the file that are not replaced. Each has the deletions of users, whatever its partitions are. */
function othersOf(
  replaced: readonly Server[],
  servers: ReturnType<typeof loadAllServers<typeof backupConfig>>,
  connect: (config: BackupConfig, database: string) => ClickHouseClient,
): OtherServer[] {
  return servers.flatMap(({ config, server }) => {
    if (!server || replaced.some(({ name }) => name === server.name)) return [];
    return [{ name: server.name, group: server.group, client: connect(config, config.CLICKHOUSE_DATABASE) }];
  });
}

/** Returns the replicas, the chosen one first. */
function replicasOf(
  config: BackupConfig,
  own: Server,
  replicas: readonly Server[],
  connect: (config: BackupConfig, database: string) => ClickHouseClient,
): RestoredReplica[] {
  return [own, ...replicas.filter(({ name }) => name !== own.name)].map(({ name, url }) => {
    const of = { ...config, CLICKHOUSE_URL: url };
    return { name, config: of, connect: (database) => connect(of, database) };
  });
}

function help(name: string): string {
  return `Usage: ${name} --from DIRECTORY|ADDRESS [--server NAME] [--yes]

Restores a backup of "sluice backup". Stop the writers first; the other services may run. It checks the backup, the
writers and Kafka, says what will be replaced and what is missing, and asks for confirmation. The tables are restored
beside the present ones and exchanged at the end: a restore that fails or is interrupted changes nothing and can be
repeated. Of replicas, the databases are dropped at the end, and filled with what was restored: a restore that fails
from then on says so, and has to be run again, to its end.

Start the writers afterwards: they read everything since the backup from Kafka again, and store each row once.

  --from DIRECTORY|ADDRESS   as --to of "sluice backup"
  --server NAME              which ClickHouse server, where CLICKHOUSE_SERVERS_FILE names several; default
                             CLICKHOUSE_SERVER. It may be the backup of another server with the same partitions.
                             Deletions of users are taken over from all servers that answer
  --yes                      restores without confirmation, also when Kafka no longer has all messages since the backup
  --help                     this text

Exit codes: 0 restored, 1 not restored, 2 wrong arguments, 130 interrupted.`;
}

function describePlan(
  { manifest, identity, isOfAnother, logs, replaces }: RestorePlan,
  location: string,
  database: string,
  owner: DatabaseOwner,
): string[] {
  const { startedAt, sluiceVersion, migration, groupId } = manifest;
  return [
    `${location} is a backup of ${startedAt} UTC, made by Sluice ${sluiceVersion} (migration ${migration}).`,
    ...(isOfAnother
      ? [
          `It is of ${identity?.server || 'a server'} (group ${groupId}), and becomes ${owner.server || 'that of the replicas'} (group ${owner.group}).`,
        ]
      : []),
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
    ...(logs.added === 0
      ? []
      : [
          `Besides, ${logs.added} partitions were added since the backup, and have ${logs.addedMessages} messages. Grow the ` +
            'restored database as docs/operate/backup.md says, or these are not stored.',
        ]),
  ];
}

function describeNext({ logs, replaces }: RestorePlan, hasOtherDeletions: boolean): string {
  const deletions =
    replaces?.hasDeletions || hasOtherDeletions
      ? 'the newest events are missing'
      : 'the newest events are missing, and users who were deleted since the backup are visible';
  return `Start the writers: they read ${logs.messages} messages from Kafka and store what is not stored yet. Until then ${deletions}.`;
}

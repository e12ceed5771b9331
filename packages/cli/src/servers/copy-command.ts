import { type CopyPlan, planCopy, rowsOf } from '@sluice/servers/copy/plan-copy';
import { remoteTables } from '@sluice/servers/copy/remote-table';
import { type CopyProgress, runCopy } from '@sluice/servers/copy/run-copy';
import type { ConfiguredServer } from '@sluice/servers/state/connected-server';
import { createLogger } from '@sluice/shared/base/log';
import { ArgumentsError, readArguments } from '@sluice/shared/config/command-line';
import { createKafka } from '@sluice/shared/kafka/client';
import { describeRange } from '@sluice/shared/servers/partition-range';
import { isNativeAddress, NATIVE_ADDRESS } from '@sluice/shared/servers/servers-file';
import { parseCommand } from '../command/parse-command.ts';
import { interruption, megabytes, ProgressLines, percentageOf, type Terminal } from '../command/terminal.ts';
import { reasonOf } from '../command/unreachable.ts';
import { findServer } from './chosen-server.ts';

export const COPY_HELP = `  copy --from NAME --to NAME [--from-native HOST:PORT] [--bandwidth BYTES] [--yes]
                        fills a server with all that another one has, or with what belongs to its own partitions, while
                        everything else runs. Stop the writers of the server that is filled first, and start them afterwards.
                        Broken off at any point, it goes on where it was when it is run again
    --from-native       where the server that is filled reaches the other one over ClickHouse's native protocol; default
                        "native" of the file
    --bandwidth         how many bytes a second it reads at most
    --yes               does not ask for confirmation`;

export interface CopyArguments {
  readonly source: ConfiguredServer;
  readonly target: ConfiguredServer;
  /** Undefined: that of the file. */
  readonly native: string | undefined;
  /** In bytes a second; 0: any number. */
  readonly bandwidth: number;
  readonly yes: boolean;
}

/** @throws {ArgumentsError} that names every error */
export function parseCopy(args: readonly string[], servers: readonly ConfiguredServer[]): CopyArguments {
  const { texts, flags } = parseCommand(args, {
    commands: { copy: 'none' },
    texts: { from: '', to: '', 'from-native': '', bandwidth: '' },
    flags: ['yes'],
    usage: 'copy takes no arguments but its options.',
  });
  const { from, to, 'from-native': native, bandwidth } = texts;
  const read = readArguments({
    source: () => findServer('--from', from, servers),
    target: () => findServer('--to', to, servers),
    different: () => {
      if (from !== '' && from === to) throw new ArgumentsError('--from and --to must be two servers.');
    },
    native: () => {
      if (native !== '' && !isNativeAddress(native)) throw new ArgumentsError(`--from-native ${NATIVE_ADDRESS}.`);
      return native || undefined;
    },
    bandwidth: () => {
      if (!/^(|[1-9]\d{0,14})$/.test(bandwidth)) {
        throw new ArgumentsError('--bandwidth must be a whole number of bytes a second.');
      }
      return Number(bandwidth);
    },
  });
  const { source, target } = read;
  return { source, target, native: read.native, bandwidth: read.bandwidth, yes: flags.yes };
}

/** Copies a server to another one, and returns the exit code. */
export async function runCopyCommand(
  { source, target, native, bandwidth, yes }: CopyArguments,
  { print, confirm }: Terminal,
): Promise<number> {
  const kafka = createKafka(target.config, 'sluice-servers', createLogger('sluice-servers', 'error'));
  const signal = interruption();
  const lines = new ProgressLines((line) => print(line));
  let begun: 'nothing' | 'tables' | 'rows' = 'nothing';
  try {
    const remote = remoteTables(source, native);
    const plan = await planCopy({ source, target, kafka, remote, bandwidth });
    for (const line of describePlan(plan)) print(line);
    if (!yes && !(await confirm('Copy? [y/N] '))) {
      print('nothing was changed');
      return 1;
    }
    begun = 'tables';
    const startedAt = performance.now();
    await runCopy({
      ...{ plan, kafka, remote, bandwidth, signal, onStep: print },
      onBegin: () => {
        begun = 'rows';
      },
      onProgress: (progress) => lines.show(describeProgress(progress)),
    });
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    print(
      `${target.server.name} is complete, ${seconds} s. Start its writers: they read from Kafka what came meanwhile.`,
    );
    return 0;
  } catch (error) {
    console.error(`${reasonOf(error)}\n${describeLeft(target.server.name, begun)}`);
    return signal.aborted ? 130 : 1;
  }
}

function describePlan(plan: CopyPlan): string[] {
  const { source, target, partitions, bytes, copiedBytes, share, dropped, versions } = plan;
  const [from, to] = [source.server.name, target.server.name];
  const rows = partitions.reduce((sum, partition) => sum + partition.rows, 0);
  return [
    `${from} has ${rows.toLocaleString('en')} events in ${partitions.length} partitions of the table: ${megabytes(bytes)} with ` +
      'everything else.',
    ...(share
      ? [
          `${to} gets those of the partitions ${describeRange(share.range)} of ${share.partitionCount}, about ` +
            `${rowsOf(rows, plan).toLocaleString('en')}: ${megabytes(copiedBytes)} with everything else.`,
        ]
      : []),
    dropped === 0
      ? `${to} has no events.`
      : `${to} has ${dropped.toLocaleString('en')} events, which are dropped unless they are of a copy that was broken off.`,
    ...(versions ? [`ClickHouse is ${versions[0]} at ${from} and ${versions[1]} at ${to}.`] : []),
  ];
}

function describeProgress({ what, rows, rowsExpected, bytes, done, all }: CopyProgress): string {
  const [written, expected] = [rows, rowsExpected].map((number) => number?.toLocaleString('en'));
  const share = rowsExpected === undefined ? '' : ` of ${expected}, ${percentageOf(rows, rowsExpected)}`;
  return `${what}: ${written} rows${share}, ${megabytes(bytes)} read; ${done} of ${all} table partitions`;
}

/** Says what a command that failed has changed. */
function describeLeft(name: string, begun: 'nothing' | 'tables' | 'rows'): string {
  switch (begun) {
    case 'nothing':
      return 'Nothing was changed.';
    case 'tables':
      return `${name} is as it was, with the tables of this version.`;
    case 'rows':
      return `${name} is not complete, and is not read. Run the command again: it goes on where it was.`;
  }
}

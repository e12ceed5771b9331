import { ClickHouseError } from '@clickhouse/client';
import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import { ROW_FORMAT } from '@sluice/shared/rows';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import { COLD_VOLUME_AWAY, type DeadLetter } from '@sluice/storage/protocol/dead-letter';
import { type Line, linesOf, type RowMessage, withoutLineFeed } from '@sluice/storage/protocol/row-batch';
import { STATEMENTS } from './statements.ts';

/** The rows of messages, without those that became dead letters. */
export interface DividedRows {
  readonly kept: readonly RowMessage[];
  readonly deadLetters: readonly DeadLetter[];
}

/** Takes rows out of their messages, each with the reason why it is a dead letter. */
export function takeOut(lines: readonly Line[], reasons: ReadonlyMap<Line, string>): DividedRows {
  const kept = Map.groupBy(
    lines.filter((line) => !reasons.has(line)),
    ({ message }) => message,
  );
  return {
    kept: [...kept].map(([message, rest]) => ({ ...message, value: Buffer.concat(rest.map(({ bytes }) => bytes)) })),
    deadLetters: lines.flatMap((line) => {
      const reason = reasons.get(line);
      return reason === undefined ? [] : [deadLetter(line, reason)];
    }),
  };
}

function deadLetter(line: Line, reason: string): DeadLetter {
  const { value: _value, ...origin } = line.message;
  return { ...origin, format: ROW_FORMAT, line: line.index, row: withoutLineFeed(line.bytes), reason };
}

/** What ClickHouse says where a disk does not answer, or not in time. */
const DISK_ERRORS = new ErrorCodes('S3_ERROR', 'NETWORK_ERROR', 'SOCKET_TIMEOUT', 'TIMEOUT_EXCEEDED');

/** Returns whether a statement may have failed because the cold volume does not answer. */
export function mayBeColdVolume(error: unknown): boolean {
  return error instanceof ClickHouseError && DISK_ERRORS.has(error.code);
}

/**
 * Takes the events out of their messages that may lie on the cold volume. None are where nothing of their months does.
 *
 * @param session has the events in its staging table
 * @throws ClickHouse's errors
 */
export async function setColdEventsAside(
  session: TemporaryTables,
  messages: readonly RowMessage[],
): Promise<DividedRows> {
  const found = await session.read<{ ms: number | string }>(STATEMENTS['find-cold-times']);
  const times = new Set(found.map(({ ms }) => Number(ms)));
  const lines = linesOf(messages);
  // ClickHouse has taken the rows: each is an object. An empty line is none.
  const cold = lines.filter(({ bytes }) => {
    const text = bytes.toString().trim();
    return text !== '' && times.has(Number((JSON.parse(text) as { timestamp?: unknown }).timestamp));
  });
  return takeOut(lines, new Map(cold.map((line) => [line, COLD_VOLUME_AWAY])));
}

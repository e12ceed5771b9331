import type { ClickHouseSession } from '../clickhouse/session.ts';
import { type DeadLetter, deadLetterId } from '../protocol/dead-letter.ts';
import { STATEMENTS } from './statements.ts';

/** Inserts dead letters. A row that is a dead letter already stays one dead letter. @throws ClickHouse's errors */
export async function storeDeadLetters(session: ClickHouseSession, deadLetters: readonly DeadLetter[]): Promise<void> {
  // Base64, because a row may hold bytes that are not UTF-8, which JSON cannot.
  const lines = deadLetters.map((deadLetter) =>
    JSON.stringify({ ...deadLetter, id: deadLetterId(deadLetter), row: deadLetter.row.toString('base64') }),
  );
  await session.load(STATEMENTS['store-dead-letters'], [Buffer.from(lines.join('\n'))]);
}

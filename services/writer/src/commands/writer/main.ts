// npm run writer: shows, halts and resumes the partitions of the writers, with the environment of a writer.
import { createInterface } from 'node:readline/promises';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { ArgumentsError, calledAs, runCommand } from '@sluice/shared/command-line';
import { clickHouseEnv, kafkaEnv, loadConfigOrExit } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { z } from 'zod';
import { GroupMismatch, refuseOtherGroups } from '../../clickhouse/claim-database.ts';
import { groupEnv } from '../../config.ts';
import { runWriterCommand } from './command.ts';
import { createPartitions } from './partitions.ts';

const config = loadConfigOrExit(z.object({ ...kafkaEnv, ...clickHouseEnv, ...groupEnv }), process.env);
const application = 'sluice-writer-command';
const client = createClickHouse(config, { application, requestTimeoutMs: 60_000, connectionsMax: 2 });
const kafka = createKafka(config, application, createLogger(application, 'error'));
const partitions = createPartitions(kafka, client, config.KAFKA_GROUP_ID, Object.values(topicNames(config)));

async function confirm(prompt: string): Promise<boolean> {
  if (!process.stdin.isTTY) {
    console.log('There is no terminal to ask for confirmation. Run the command again with --yes.');
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const reply = await terminal.question(prompt).finally(() => terminal.close());
  return /^y(es)?$/i.test(reply.trim());
}

process.exitCode = await runCommand(calledAs('writer'), async () => {
  try {
    // The halts of another group would have no effect.
    await refuseOtherGroups(client, config.KAFKA_GROUP_ID);
    return await runWriterCommand(process.argv.slice(2), partitions, { print: console.log, confirm });
  } catch (error) {
    if (error instanceof ArgumentsError) throw error;
    if (error instanceof GroupMismatch) {
      console.error(`Nothing is done: ${error.message}.`);
      return 1;
    }
    const reason = (error as Error).message || (error as NodeJS.ErrnoException).code;
    console.error(`Kafka or ClickHouse cannot be reached (${reason}). Is Sluice running at ${config.CLICKHOUSE_URL}?`);
    return 1;
  }
});
await client.close();

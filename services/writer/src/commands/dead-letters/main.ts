// npm run dead-letters: lists, shows and replays dead letters, with the environment of a writer.
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { ArgumentsError, calledAs, runCommand } from '@sluice/shared/command-line';
import { loadConfigOrExit } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createLogger } from '@sluice/shared/log';
import { printable } from '@sluice/shared/printable';
import { runDeadLettersCommand } from './command.ts';
import { deadLettersConfig } from './config.ts';
import { createDeadLetters } from './dead-letters.ts';

const config = loadConfigOrExit(deadLettersConfig, process.env);
const application = 'sluice-dead-letters';
const client = createClickHouse(config, { application, requestTimeoutMs: 60_000, connectionsMax: 1 });
const kafka = createKafka(config, application, createLogger(application, 'warn'));
const deadLetters = createDeadLetters(config, client, kafka);

process.exitCode = await runCommand(calledAs('dead-letters'), async () => {
  try {
    return await runDeadLettersCommand(process.argv.slice(2), deadLetters, console.log);
  } catch (error) {
    if (error instanceof ArgumentsError) throw error;
    const reason = (error as Error).message || (error as NodeJS.ErrnoException).code;
    const { host } = new URL(config.CLICKHOUSE_URL);
    console.error(`The dead letters cannot be reached (${printable(reason ?? '')}). Is Sluice running at ${host}?`);
    return 1;
  }
});
await client.close();

import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { startClickHouse } from './clickhouse.ts';
import { startNativeRelay } from './native-relay.ts';
import { makeTempDir } from './testing/temp-dir.ts';

test('an engine behind a relay goes on when a server that reads from it resets the connection', async () => {
  await using dir = await makeTempDir();
  const server = await startClickHouse({ dataDir: dir.path });
  const relay = await startNativeRelay(server.tcpPort);
  const frozen = await startNativeRelay(server.tcpPort);
  const run = async (sql: string, signal?: AbortSignal) => {
    const url = `${server.url}/?cancel_http_readonly_queries_on_client_close=1&readonly=2`;
    return (await fetch(url, { method: 'POST', body: sql, signal: signal ?? null })).text();
  };
  const running = () => run("SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(sleepEachRow%'");
  try {
    const leaving = new AbortController();
    // The engine reads from itself, by way of both relays, for longer than the test takes.
    const slow = run(
      `SELECT sum(sleepEachRow(0.01)) FROM remote('127.0.0.1:${relay.port},127.0.0.1:${frozen.port}', numbers(100000))
      SETTINGS max_block_size = 10, receive_timeout = 1`,
      leaving.signal,
    );
    await eventually(running).toBe('3\n');
    const melt = frozen.freeze();
    // The statement cannot be cancelled at what is frozen: the engine waits, and then resets both connections.
    leaving.abort();
    await expect(slow).rejects.toThrow();
    await eventually(running).toBe('1\n');
    // Nor does the engine mind what connected meanwhile and has left.
    const late = Array.from({ length: 6 }, () =>
      run(`SELECT 1 FROM remote('127.0.0.1:${frozen.port}', numbers(1)) SETTINGS receive_timeout = 1`),
    );
    for (const answer of await Promise.all(late)) expect(answer).toContain('All connection tries failed');
    melt();
    await eventually(running).toBe('0\n');
  } finally {
    await Promise.all([relay.stop(), frozen.stop()]);
    await server.kill9();
  }
});

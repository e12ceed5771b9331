import { expect, test } from 'vitest';
import { sluice, startSluice } from '../kit/backups.ts';
import { COPY, startCopiedMirrors } from '../kit/copied-mirrors.ts';
import { readMetric } from '../kit/metrics.ts';
import { startStatementProxy } from '../kit/statement-proxy.ts';

async function sumOf(read: Promise<string>): Promise<number> {
  return Number(await read);
}

test('a wiped server is copied under load, and goes on where the copy began, not where it was before', async () => {
  await using mirrors = await startCopiedMirrors('copied');
  const { one, other, running, more, read } = mirrors;
  await more();
  await running.writers['a2']?.stop();
  // What it has committed is far behind from now on.
  await more(200);
  await mirrors.wipe();
  expect(await sluice(running, COPY)).toEqual({ code: 0, output: expect.stringContaining('a2 is complete') });
  const positions = await sumOf(read(other, 'SELECT sum(next_offset) FROM writer_positions FINAL'));
  await mirrors.startWriter();
  await more();
  await mirrors.expectEqual();

  const { a2 } = running.writers;
  if (!a2) throw new Error('a2 has no writer');
  const stored = await sumOf(read(one, 'SELECT sum(next_offset) FROM writer_positions FINAL'));
  const messages = await readMetric(a2, 'sluice_writer_stored_messages_total');
  expect(messages).toBeGreaterThan(0);
  expect(messages).toBeLessThanOrEqual(stored - positions);
});

test('a copy that is killed at any step is right when it is run again', async () => {
  await using mirrors = await startCopiedMirrors('brokenoff');
  const { other, running, servers, more, read } = mirrors;
  await more();
  await running.writers['a2']?.stop();
  await mirrors.wipe();

  const reached: string[] = [];
  let at = '';
  let kill: (() => Promise<unknown>) | undefined;
  await using proxy = await startStatementProxy(other.url, async (name, moment) => {
    if (name === 'record-alive') return;
    at = `${moment} ${name}`;
    // The first time that a run gets so far.
    if (reached.includes(at) || !kill) return;
    reached.push(at);
    await kill();
  });
  await running.writeServers({ ...servers, a2: { ...servers.a2, url: proxy.url } });
  for (;;) {
    const copy = startSluice(running, COPY);
    let isKilled = false;
    kill = async () => {
      isKilled = true;
      copy.child.kill('SIGKILL');
      await copy.ended;
    };
    const { code, output } = await copy.ended;
    const state = await read(other, 'SELECT state FROM database_identity ORDER BY recorded_at DESC LIMIT 1');
    if (reached.includes('after record-filling')) {
      if (state === 'complete') break;
      expect([at, state]).toEqual([at, 'filling']);
    }
    // What a run has sent may arrive after it was killed.
    if (!isKilled)
      expect([code, output]).toEqual([1, expect.stringContaining('Another command copies to this server')]);
    // As after twenty seconds of silence.
    await read(
      other,
      "INSERT INTO copies SELECT run, 'ended', source, source_id, '', 0, [], recorded_at + 1 FROM copies ORDER BY recorded_at DESC LIMIT 1",
    );
    await more(30);
  }
  await running.writeServers(servers);
  expect(reached).toEqual(
    expect.arrayContaining([
      ...['before record-begun', 'after record-begun', 'after copy-user-deletions', 'after record-positions'],
      ...['before copy-events', 'after copy-events', 'after record-events', 'after copy-entities', 'after erase-again'],
      ...['before record-filling', 'after store-positions', 'before record-complete'],
    ]),
  );
  await mirrors.startWriter();
  await more();
  await mirrors.expectEqual();
});

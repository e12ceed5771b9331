import { expect, test } from 'vitest';
import { PipelineHistory } from './pipeline-history.ts';
import type { ServicesState } from './pipeline-state.ts';

type State = Pick<ServicesState, 'accepted' | 'writers' | 'lag'>;

const AWAY: State = { accepted: null, writers: null, lag: null };

function stateOf(events: number, storedMessages: number, haltedPartitions = 0): State {
  return {
    accepted: { events, rejectedCalls: 0, clients: [], refused: [] },
    writers: {
      ...{ storedMessages, haltedPartitions, batchFailures: 0, deadLetters: 0 },
      ...{ deadLetterAlarm: false, lastStoredAt: null },
    },
    lag: { messages: 3, seconds: 1.5, headroomSeconds: null },
  };
}

/** Returns a history of states, one each minute. */
async function historyOf(states: readonly State[]): Promise<PipelineHistory> {
  let index = -1;
  const history = new PipelineHistory(
    async () => states[index] as State,
    () => index * 60_000,
  );
  for (const _ of states) {
    index += 1;
    await history.sample();
  }
  return history;
}

test('a sample has the rates since the one before; without one, or after a start, they are not known', async () => {
  const history = await historyOf([stateOf(100, 10), stateOf(700, 70, 2), stateOf(60, 6), AWAY, stateOf(120, 6)]);
  const rates = history.samples().map(({ acceptedPerSecond, storedPerSecond }) => [acceptedPerSecond, storedPerSecond]);
  expect(rates).toEqual([
    [null, null],
    [10, 1],
    [null, null],
    [null, null],
    [null, null],
  ]);
  const rest = { lagMessages: 3, lagSeconds: 1.5 };
  expect(history.samples()[1]).toMatchObject({ at: '1970-01-01T00:01:00.000Z', ...rest, haltedPartitions: 2 });
  expect(history.samples()[3]).toMatchObject({ lagMessages: null, lagSeconds: null, haltedPartitions: null });
});

test('an hour is kept, and each of its samples has its rates', async () => {
  const history = await historyOf(Array.from({ length: 200 }, (_, minute) => stateOf(minute * 60, minute * 60)));
  const samples = history.samples();
  expect([samples.length, samples.at(-1)?.at]).toEqual([60, '1970-01-01T03:19:00.000Z']);
  expect(new Set(samples.map(({ acceptedPerSecond }) => acceptedPerSecond))).toEqual(new Set([1]));
});

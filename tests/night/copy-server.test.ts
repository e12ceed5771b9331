import { expect, test } from 'vitest';
import { copyDespiteKills } from '../kit/copied-mirrors.ts';

test('a copy that is killed at any step is right when it is run again', async () => {
  expect(await copyDespiteKills('brokenoffanywhere')).toEqual(
    expect.arrayContaining([
      ...['before record-begun', 'after record-begun', 'after copy-user-deletions', 'after record-positions'],
      ...['before copy-events', 'after copy-events', 'after record-events', 'after copy-entities', 'after erase-again'],
      ...['before record-filling', 'after store-positions', 'before record-complete'],
    ]),
  );
});

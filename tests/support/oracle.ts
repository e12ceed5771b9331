import { expect } from 'vitest';
import { judge } from './judge.ts';
import type { Tally } from './load.ts';
import type { Pipeline } from './pipeline.ts';

/** Every accepted event is there, once, nothing else is, and users and organizations are as they should be. */
export async function expectExactlyOnce(pipeline: Pipeline, clickhouseUrl: string, tally: Tally): Promise<void> {
  const verdict = await judge(pipeline, clickhouseUrl, tally);
  const faultless = { lost: [], doubled: [], invented: [], wrong: [], deadLetters: 0, refused: [] };
  expect(verdict).toMatchObject(faultless);
  expect(verdict.required).toBeGreaterThan(0);
}

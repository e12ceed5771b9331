import { expect, test } from 'vitest';
import { AnsweringServers } from './one-server.ts';

/** Notes who answered when, in seconds, and returns what was found out at the end. */
function found(...answers: readonly (readonly [name: string, seconds: number])[]): readonly string[] | undefined {
  const servers = new AnsweringServers();
  return answers.map(([name, seconds]) => servers.note(name, seconds * 1_000)).at(-1);
}

test('two servers that answer by turns are found', () => {
  expect(found(['a', 0], ['b', 1], ['a', 2])).toEqual(['b', 'a']);
});

test('a server that was replaced by one with another name is no second one', () => {
  expect(found(['a', 0], ['a', 1], ['b', 2], ['b', 3])).toBeUndefined();
});

test('nor is one that comes back after the one that stood in for it', () => {
  expect(found(['a', 0], ['b', 30], ['a', 100])).toBeUndefined();
});

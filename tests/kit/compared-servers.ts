import { deepStrictEqual } from 'node:assert/strict';
import { type CommandEnd, sluice } from './backups.ts';
import { expectedEvents } from './expected-events.ts';
import type { Tally } from './load.ts';
import type { Pipeline } from './pipeline.ts';

/** Compares two servers by the command of operators, which may be done under load. */
export async function compareServers(pipeline: Pipeline, one: string, other: string): Promise<CommandEnd> {
  return await sluice(pipeline, ['servers', 'compare', one, other]);
}

/**
 * Checks that two servers were found the same. Once the user of an event is erased, the command cannot know that the event was
 * sent again for another user while it was deleted, and names it: such events, and what they name, may differ.
 *
 * @throws {AssertionError} with what it names
 */
export function expectComparedSame({ code, output }: CommandEnd, tally: Tally): void {
  const several = [...expectedEvents(tally, new Set())].filter(([, { users }]) => users.size > 1);
  const uncertain = new Set(several.flatMap(([, { uuid = '', users, group }]) => [uuid, group, ...users]));
  const named = [...output.matchAll(/^ {2}\w+ (\[.*\]): /gm)];
  const isUncertain = (key: string) =>
    (JSON.parse(key) as (string | number)[]).some((part) => uncertain.has(String(part)));
  const others = named.filter(([, key = '']) => !isUncertain(key)).map(([line]) => line);
  deepStrictEqual(others, [], output);
  if (code !== 0 && named.length === 0) throw new Error(output);
}

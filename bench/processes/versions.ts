import type { OtherVersion } from '../report/benchmark.ts';
import { System } from './system.ts';

/** A version of the services under measurement. */
export interface Version {
  /** Which one it is; `undefined` for this version. */
  readonly commit: string | undefined;
  readonly system: System;
}

/** Starts this version, and beside it the other one, if there is one. They end with `running`. */
export async function startVersions(
  running: AsyncDisposableStack,
  other?: OtherVersion,
): Promise<readonly [Version, ...Version[]]> {
  const current = { commit: undefined, system: running.use(await System.start()) };
  if (!other) return [current];
  const { commit, checkout } = other;
  return [current, { commit, system: running.use(await System.start({ checkout })) }];
}

/** Returns what stands behind the name of a row or a table, to say which version it is of: nothing for this version. */
export function suffixOf({ commit }: Version): string {
  return commit === undefined ? '' : `, commit ${commit}`;
}

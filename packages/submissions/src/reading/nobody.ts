import { commaSeparated } from '@sluice/shared/config';
import { isMergeKey } from '@sluice/shared/rows/merged-user';
import { z } from 'zod';
import { IDENTIFIER_LENGTH_MAX } from './submission-limits.ts';

/** What clients send in place of an identifier, in lower case, unless an operator says otherwise. Whoever is named so is no one person. */
export const NOBODY: readonly string[] = [
  ...['null', 'undefined', 'none', 'nil', 'nan', 'n/a', 'true', 'false', '[object object]'],
  ...['anonymous', 'anon', 'guest', 'visitor', 'unknown', 'unidentified', 'not_authenticated'],
  ...['id', 'user', 'user_id', 'userid', 'distinct_id', 'distinctid', 'anonymous_id', 'anonymousid', '-1'],
];

/** Zeros, and UUIDs of zeros. */
const ZEROS = /^[0-]+$/;

/** Knows which identifiers mean nobody: they are never linked. */
export class Nobody {
  readonly #names: ReadonlySet<string>;
  readonly #lengthMax: number;

  /** @param names in any case. What is empty, and zeros, means nobody anyway */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.trim().toLowerCase()));
    this.#lengthMax = Math.max(0, ...[...this.#names].map(({ length }) => length));
  }

  /** Says it also of what would name a merged user in place of a visitor. */
  isNamedBy(id: string): boolean {
    if (isMergeKey(id)) return true;
    const trimmed = id.trim();
    if (trimmed === '' || ZEROS.test(trimmed)) return true;
    return trimmed.length <= this.#lengthMax && this.#names.has(trimmed.toLowerCase());
  }
}

/** How many identifiers of nobody may be configured. */
const NOBODY_IDS_MAX = 1_000;

const idsOfNobody = commaSeparated.pipe(
  z
    .array(z.string().max(IDENTIFIER_LENGTH_MAX, `must have at most ${IDENTIFIER_LENGTH_MAX} characters each`))
    .max(NOBODY_IDS_MAX, `must be at most ${NOBODY_IDS_MAX} identifiers`),
);

/** What means nobody, in the environment of whoever creates rows: of ingest-api, and of what takes rejected calls again. */
export const nobodyEnv = {
  NOBODY_IDS: idsOfNobody.default([...NOBODY]),
  NOBODY_IDS_ADDED: idsOfNobody.default([]),
};

/** What it says. */
export interface NobodyConfig {
  readonly NOBODY_IDS: readonly string[];
  readonly NOBODY_IDS_ADDED: readonly string[];
}

/** Returns what a configuration says. */
export function nobodyOf({ NOBODY_IDS, NOBODY_IDS_ADDED }: NobodyConfig): Nobody {
  return new Nobody([...NOBODY_IDS, ...NOBODY_IDS_ADDED]);
}

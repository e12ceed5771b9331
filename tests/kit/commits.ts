import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

const EXAMPLES = new URL('../../examples/', import.meta.url);

/** A file for the importer: the commits of 17 repositories, each an organization. */
export const COMMITS = fileURLToPath(new URL('commits.ndjson.gz', EXAMPLES));

/** What is stored once all {@link COMMITS} are imported. */
export interface ExpectedCommits {
  readonly events: number;
  readonly submissions: number;
  readonly users: number;
  /** The properties of each organization. */
  readonly organizations: Readonly<Record<string, Record<string, unknown>>>;
  readonly eventNames: Readonly<Record<string, number>>;
  /** Events of each organization. */
  readonly perOrg: Readonly<Record<string, number>>;
  readonly first: string;
  readonly last: string;
  readonly topUsers: Readonly<Record<string, number>>;
}

export async function readExpectedCommits(): Promise<ExpectedCommits> {
  return JSON.parse(await readFile(new URL('commits.expected.json', EXAMPLES), 'utf8')) as ExpectedCommits;
}

/** A file for the importer with some of {@link COMMITS}. */
export interface SomeCommits {
  readonly file: string;
  readonly submissions: number;
}

/** Writes all commits of some organizations to a file in `folder`. */
export async function writeCommitsOf(organizations: readonly string[], folder: string): Promise<SomeCommits> {
  const lines = gunzipSync(await readFile(COMMITS))
    .toString()
    .trimEnd()
    .split('\n');
  const found = lines.filter((line) => {
    const { foreignUserGroupId } = JSON.parse(line) as { foreignUserGroupId?: string };
    return foreignUserGroupId !== undefined && organizations.includes(foreignUserGroupId);
  });
  const file = join(folder, 'commits.ndjson');
  await writeFile(file, `${found.join('\n')}\n`);
  return { file, submissions: found.length };
}

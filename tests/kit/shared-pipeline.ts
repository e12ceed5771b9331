import { WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { inject } from 'vitest';
import { type Pipeline, startPipeline } from './pipeline.ts';

/** The origins of pages of tests, which may send to ingest-api. */
const PAGE_ORIGINS = ['http://app.localhost', 'http://sluice.localhost'];

/**
 * What a test file does with a pipeline that it shares with others, in a workspace of its own. It must leave the processes as
 * it found them.
 */
export interface Tenant
  extends Pick<
    Pipeline,
    'services' | 'database' | 'startAnother' | 'submit' | 'get' | 'deleteUser' | 'drained' | 'settled'
  > {
  /** A key of all scopes, for the workspace of the tenant. */
  readonly key: string;
  readonly workspace: string;
  /**
   * Creates another key, and waits until it is in force.
   *
   * @param workspace `test` for that of the tenant; any other one is the tenant's own, too
   */
  addKey: Pipeline['addKey'];
}

/** With the files of the worker before, as vitest keeps modules of a tier that is not isolated. */
let pipeline: Promise<Pipeline> | undefined;

/**
 * Returns the pipeline of this worker. It is started by the first file that takes it, and ends with the worker. It delivers
 * webhooks to this machine, changes keys, and takes what pages of tests send.
 */
export async function sharedPipeline(): Promise<Pipeline> {
  pipeline ??= startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: `shared${process.pid}`,
    // Dozens of files wait for their rows.
    env: { CORS_ORIGINS: PAGE_ORIGINS.join(','), BATCH_AGE_MS: '300' },
    envOf: { 'query-api': { ...WEBHOOKS_ENV, API_KEYS_CHANGEABLE: 'true' } },
  });
  try {
    return await pipeline;
  } catch (error) {
    pipeline = undefined;
    throw error;
  }
}

/**
 * Takes a workspace of the shared pipeline.
 *
 * @param workspace no two files of a tier may name the same
 * @param keys a key of all scopes for each of these workspaces, whose names are taken as they are
 */
export async function takeTenant(workspace: string, keys: Readonly<Record<string, string>> = {}): Promise<Tenant> {
  const shared = await sharedPipeline();
  await shared.addKeys(keys);
  const key = await shared.addKey(workspace);
  return {
    ...shared,
    ...{ key, workspace },
    addKey: (other, scopes) => shared.addKey(other === 'test' ? workspace : `${workspace}-${other}`, scopes),
    submit: (body, init) => shared.submit(body, { key, ...init }),
    get: (path, withKey = key) => shared.get(path, withKey),
    deleteUser: (foreignId, withKey = key) => shared.deleteUser(foreignId, withKey),
    settled: (total, withKey = key) => shared.settled(total, withKey),
  };
}

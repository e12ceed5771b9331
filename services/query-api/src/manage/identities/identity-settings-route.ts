import { Problem, parseBody } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import {
  acceptJson,
  BODY_CODES,
  type Describe,
  described,
  describer,
  jsonBody,
  jsonResponse,
  once,
} from '../../http/http.ts';
import { refuseParameters } from '../../records/records.ts';
import {
  type Admission,
  IDENTITIES,
  IDENTITY_DEFAULT,
  type Identity,
  type ReadDependencies,
  type Setting,
  type SettingTable,
} from '../../store/store.ts';

/** Where it is stored (docs/design/decisions/0124-whether-reads-see-persons.md). */
export const IDENTITY_SETTINGS: SettingTable = { name: 'console_identity_settings', value: 'identity', time: 'set_at' };

/** The largest body, in bytes. */
export const IDENTITY_SETTINGS_BODY_BYTES_MAX = 16 * 1_024;

/** The settings, as they are stored, read and sent. */
const ONE: Admission = { pool: 'documents', bytes: 6 * IDENTITY_SETTINGS_BODY_BYTES_MAX };

interface Parts {
  Querystring: QueryParameters;
}

/**
 * Registers what reads see that do not say it.
 *
 * @param settings default: nothing can be set, and that holds which ClickHouse has
 */
export function registerIdentitySettings(
  app: FastifyInstance,
  { queryRunner }: Pick<ReadDependencies, 'queryRunner'>,
  settings: Setting<Identity> | undefined,
): void {
  acceptJson(app, IDENTITY_SETTINGS_BODY_BYTES_MAX);
  const options = { bodyLimit: IDENTITY_SETTINGS_BODY_BYTES_MAX, config: { admission: ONE } };
  const ofAdmin = { ...options, config: { scope: 'admin', admission: ONE } } as const;
  const path = '/identities/settings';
  app.get<Parts>(path, described(options, DESCRIBE.get), async ({ query, workspace }) => {
    refuseParameters(query);
    return { identity: (await (settings ?? queryRunner.defaultIdentities).of(workspace)) ?? IDENTITY_DEFAULT };
  });
  app.put<Parts>(path, described(ofAdmin, DESCRIBE.put), async ({ query, body, workspace }) => {
    refuseParameters(query);
    if (!settings) throw new Problem('views_not_available', 'Nothing can be stored; the operator can change that.');
    const { identity } = parseBody(schema(), body);
    await settings.put(workspace, identity);
    queryRunner.defaultIdentities.note(workspace, identity);
    return { identity };
  });
}

const schema = once(() =>
  z
    .strictObject({
      identity: z.enum(IDENTITIES, `must be one of ${IDENTITIES.join(', ')}`).meta({
        description:
          '`linked`: reads see persons. `raw`: they see what was sent. It holds for reads whose `identity` is left out.',
      }),
    })
    .meta({ id: 'IdentitySettings', example: { identity: 'linked' } }),
);

const describing = describer({ tag: 'users' });

const DESCRIBE = {
  get: describing('getIdentitySettings', 'Whether reads see persons', () => ({
    responses: { 200: jsonResponse('What holds for the workspace.', schema()) },
    codes: ['store_unavailable'],
  })),
  put: describing('putIdentitySettings', 'Say whether reads see persons', () => ({
    keyOptional: false,
    scope: 'admin',
    description:
      'For the whole workspace, also for saved views and alerts. It is in force within ten seconds. Where nobody has said it, it is `linked`; workspaces that had events before there was this setting begin with `raw`.',
    requestBody: jsonBody(schema()),
    responses: { 200: jsonResponse('What holds now.', schema()) },
    codes: ['views_not_available', 'store_unavailable', ...BODY_CODES],
  })),
} satisfies Record<string, Describe>;

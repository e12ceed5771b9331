import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { once } from '../http/http.ts';
import type { Views } from '../manage/manage.ts';
import { describeManaged, type ManagedKind, managedSchema } from '../webhooks/webhooks.ts';
import type { Decision } from './deciding-source.ts';
import {
  DIGESTS_MAX,
  type Digest,
  type DigestState,
  digestChangeSchema,
  NEW_DIGEST,
  newDigestSchema,
} from './digest.ts';
import { errorOfDocument, type MessagesRoom, registerMessages, timeOrNull } from './message-routes.ts';
import { slackBody } from './messages.ts';

/** Registers the routes of digests. */
export function registerDigests(app: FastifyInstance, room: MessagesRoom, views: Views | undefined): void {
  registerMessages(app, room, {
    ...{ path: '/digests', kind: DIGESTS, describe: DESCRIBE, newSchema: newDigestSchema },
    changeSchema: digestChangeSchema,
    async errorsOf({ dashboard }, workspace) {
      if (dashboard === undefined || !views) return [];
      return await errorOfDocument(() => views.dashboards.find(workspace, dashboard), 'dashboard');
    },
  });
}

const STATUSES = ['ok', 'late', 'error'] as const;

/** What responses show of a digest besides what those of all webhooks do. */
interface DigestMembers extends Digest {
  readonly status: (typeof STATUSES)[number];
  readonly reason: string | null;
  readonly lastMessageAt: string | null;
}

/** The webhooks that are digests. */
const DIGESTS: ManagedKind<DigestMembers> = {
  ...{ kind: 'digest', singular: 'digest', max: DIGESTS_MAX },
  firstPosition: async () => JSON.stringify({ state: NEW_DIGEST }),
  membersOf({ webhook, progress }) {
    const { dashboard, hour, timeZone, format } = webhook.content as unknown as Digest;
    const { state = NEW_DIGEST } = JSON.parse(progress?.position ?? '{}') as Partial<Decision<DigestState>>;
    const { trouble, messageAtMs } = state;
    return {
      ...{
        dashboard,
        hour,
        timeZone,
        format,
        status: trouble ? ({ late: 'late', failed: 'error' } as const)[trouble.kind] : 'ok',
      },
      ...{ reason: trouble?.reason ?? null, lastMessageAt: timeOrNull(messageAtMs) },
    };
  },
  testBody({ id, content }, now) {
    const { format } = content as unknown as Digest;
    if (format === 'slack') return slackBody('Test of a digest.');
    return { type: 'test', timestamp: now.toISOString(), data: { digest: { id } } };
  },
};

const digestSchema = once(() => {
  const { hour, timeZone: _, dashboard, format } = newDigestSchema.shape;
  return z
    .object({
      ...managedSchema.head,
      ...{ dashboard: z.uuid().meta(dashboard.meta() ?? {}), hour, timeZone: z.string(), format },
      status: z
        .enum(STATUSES)
        .meta({ description: '`late`: one is due, and events are stored too late. `error`: numbers cannot be read.' }),
      reason: z.string().nullable().meta({ description: 'Why it is `late` or has an `error`.' }),
      lastMessageAt: z.iso.datetime().nullable(),
      ...managedSchema.rest,
    })
    .meta({ id: 'Digest' });
});

const { describe: DESCRIBE } = describeManaged({
  ...{ name: 'digest', title: 'Digest', tag: 'alerts', schema: digestSchema },
  ...{ created: newDigestSchema, change: digestChangeSchema, codes: [] },
  summary: 'Send the numbers of a dashboard each day',
  description: () =>
    `Sends one message a day: \`{"type": "digest", "timestamp": …, "data": {"id", "digest", "dashboard", "endDate", "numbers"}}\`, signed as Standard Webhooks says, or a text for Slack. It has each tile that is drawn as a number, over its range up to the end of the day before, over the time before that, and the change. After an outage the last one that was due is sent, and none of before. A workspace can have ${DIGESTS_MAX} digests.`,
});

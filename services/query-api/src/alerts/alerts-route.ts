import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { once } from '../http/http.ts';
import type { View, Views } from '../manage/manage.ts';
import { describeManaged, type ManagedKind, managedSchema } from '../webhooks/webhooks.ts';
import { ALERTS_MAX, type Alert, alertChangeSchema, newAlertSchema } from './alert.ts';
import { type AlertState, NEW_STATE, STATUSES, stateOf, statusOf } from './alert-state.ts';
import type { Decision } from './deciding-source.ts';
import { errorOfDocument, type MessagesRoom, registerMessages, timeOrNull } from './message-routes.ts';
import { plainInSlack, slackBody } from './messages.ts';

/** Registers the routes of alerts. */
export function registerAlerts(app: FastifyInstance, room: MessagesRoom, views: Views | undefined): void {
  registerMessages(app, room, {
    ...{
      path: '/alerts',
      kind: ALERTS,
      describe: DESCRIBE,
      newSchema: newAlertSchema,
      changeSchema: alertChangeSchema,
    },
    async errorsOf({ view }, workspace) {
      if (view === undefined || !views) return [];
      const isWanted = ({ report }: View) => (report === 'series' ? undefined : 'must be a view of the report series');
      return await errorOfDocument(() => views.views.find(workspace, view), 'view', isWanted);
    },
  });
}

/** What responses show of an alert besides what those of all webhooks do. */
export interface AlertMembers extends Alert {
  readonly status: (typeof STATUSES)[number];
  readonly firing: boolean;
  readonly reason: string | null;
  readonly value: number | null;
  readonly valueBefore: number | null;
  readonly evaluatedUntil: string | null;
  readonly lastMessageAt: string | null;
}

/** The webhooks that are alerts. */
const ALERTS: ManagedKind<AlertMembers> = {
  ...{ kind: 'alert', singular: 'alert', max: ALERTS_MAX },
  firstPosition: async () => JSON.stringify({ state: NEW_STATE }),
  membersOf({ webhook, progress }) {
    const { state: stored = NEW_STATE } = JSON.parse(progress?.position ?? '{}') as Partial<Decision<AlertState>>;
    const alert = webhook.content as unknown as Alert;
    const state = stateOf(alert, stored);
    const { name, view, condition, window, for: times, format } = alert;
    return {
      ...{ name, view, condition, window, for: times, format },
      ...{ status: statusOf(state), firing: state.firing, reason: state.trouble?.reason ?? null },
      ...{ value: state.value, valueBefore: state.before },
      ...{ evaluatedUntil: timeOrNull(state.endMs), lastMessageAt: timeOrNull(state.messageAtMs) },
    };
  },
  testBody({ id, content }, now) {
    const { name, format } = content as unknown as Alert;
    if (format === 'slack') return slackBody(`Test of the alert ${plainInSlack(name)}.`);
    return { type: 'test', timestamp: now.toISOString(), data: { alert: { id, name } } };
  },
};

const alertSchema = once(() => {
  const { name, view, condition, window, for: times, format } = newAlertSchema.shape;
  const time = z.iso.datetime().nullable();
  return z
    .object({
      ...managedSchema.head,
      ...{ name, view: z.uuid().meta(view.meta() ?? {}), condition, window, for: times, format },
      status: z.enum(STATUSES).meta({
        description:
          '`new`: not evaluated yet. `ok`, `pending`: the condition holds, not yet in enough evaluations. `firing`. `late`: events are stored too late to judge. `error`: the number cannot be read.',
      }),
      firing: z.boolean().meta({
        description: 'Whether it fires, as the last message said; also while it is `late` or has an `error`.',
      }),
      reason: z.string().nullable().meta({ description: 'Why it is `late` or has an `error`.' }),
      value: z
        .number()
        .nullable()
        .meta({ description: 'The number of the last evaluation; `null`: no event has one.' }),
      valueBefore: z.number().nullable().meta({ description: 'That of the window before, for `changes`.' }),
      evaluatedUntil: time.meta({ description: 'The end of the window of the last evaluation.' }),
      lastMessageAt: time,
      ...managedSchema.rest,
    })
    .meta({ id: 'Alert' });
});

const { describe: DESCRIBE } = describeManaged({
  ...{ name: 'alert', title: 'Alert', tag: 'alerts', schema: alertSchema },
  ...{ created: newAlertSchema, change: alertChangeSchema, codes: [] },
  summary: 'Watch the number of a view',
  description: () =>
    `Sends a message when a condition on the number of a view begins to hold, and one when it no longer does: \`{"type": "alert", "timestamp": …, "data": {"id", "state": "firing" or "resolved", "alert", "view", "value", "before", "condition", "window", "for", "startDate", "endDate"}}\`, signed as Standard Webhooks says, or a text for Slack. Only whole windows count, and none while the pipeline is behind by more than a window. Messages come at least once, a copy with the same \`webhook-id\`. A workspace can have ${ALERTS_MAX} alerts.`,
});

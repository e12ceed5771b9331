import {
  type Alert,
  type Digest,
  formatNumber,
  getAll,
  hrefOf,
  type StoredDashboard,
  sendJson,
  type View,
} from '../base/base.ts';
import { Time, useLoad } from '../parts/parts.ts';
import { AlertForm, DigestForm } from './alert-form.tsx';
import { conditionText, dashboardName, digestStatus, statusText, viewName } from './alert-texts.ts';
import { ManagedPage, stateOf } from './managed-page.tsx';

const TEXTS = {
  paused: 'It is off. Nothing is judged or sent until it is resumed.',
  resumed: 'It goes on.',
  question: 'Nothing is sent any more, and its secret is gone.',
};

/** An alert: how it is, a form to change it, and its last messages. */
export function AlertPage({ id }: { readonly id: string }) {
  const { data } = useLoad('views', (signal) => getAll<'views', View>('views', signal));
  const views = (data?.views ?? []).filter(({ report }) => report === 'series');
  return (
    <ManagedPage<Alert> {...{ list: 'alerts', id, title: 'Alert', heading: ({ name }) => name, texts: TEXTS }}>
      {(alert, act) => (
        <>
          <p>
            {viewName(alert, views)}: {conditionText(alert)}. State: {statusText(alert)}.
            {alert.evaluatedUntil !== null && (
              <>
                {' '}
                The number was {alert.value === null ? 'not there' : formatNumber(alert.value)} up to{' '}
                <Time value={alert.evaluatedUntil} />.
              </>
            )}{' '}
            <LastMessage at={alert.lastMessageAt} /> Its receiver: {stateOf(alert)}.
          </p>
          <details>
            <summary>Change it</summary>
            <AlertForm
              key={`${given(alert)} ${views.length}`}
              {...{ views, alert, label: 'Alert', action: 'Save' }}
              onGiven={(change) =>
                void act(async () => {
                  await sendJson(`alerts/${id}`, 'PATCH', change);
                  return 'It is saved, and judged anew.';
                })
              }
            />
          </details>
        </>
      )}
    </ManagedPage>
  );
}

/** A digest: how it is, a form to change it, and its last messages. */
export function DigestPage({ id }: { readonly id: string }) {
  const { data } = useLoad('dashboards', (signal) => getAll<'dashboards', StoredDashboard>('dashboards', signal));
  const dashboards = data?.dashboards ?? [];
  return (
    <ManagedPage<Digest>
      {...{
        list: 'digests',
        id,
        title: 'Digest',
        heading: (digest) => `Digest of ${dashboardName(digest, dashboards)}`,
      }}
      {...{ texts: TEXTS, home: 'alerts' }}
    >
      {(digest, act) => (
        <>
          <p>
            <a href={hrefOf(['dashboards', digest.dashboard])}>The dashboard</a>, each day at {digest.hour}:00,{' '}
            {digest.timeZone}. State: {digestStatus(digest)}. <LastMessage at={digest.lastMessageAt} /> Its receiver:{' '}
            {stateOf(digest)}.
          </p>
          <details>
            <summary>Change it</summary>
            <DigestForm
              key={`${given(digest)} ${dashboards.length}`}
              {...{ dashboards, digest, label: 'Digest', action: 'Save' }}
              onGiven={(change) =>
                void act(async () => {
                  await sendJson(`digests/${id}`, 'PATCH', change);
                  return 'It is saved.';
                })
              }
            />
          </details>
        </>
      )}
    </ManagedPage>
  );
}

/** Returns what a form begins with, as a text: it begins anew when something else is stored. */
function given({ url, format, ...others }: Alert | Digest): string {
  const own =
    'view' in others
      ? [others.name, others.view, others.condition, others.window, others.for]
      : [others.dashboard, others.hour, others.timeZone];
  return JSON.stringify([url, format, own]);
}

function LastMessage({ at }: { readonly at: string | null }) {
  if (at === null) return <>No message was due yet.</>;
  return (
    <>
      The last message was due <Time value={at} />.
    </>
  );
}

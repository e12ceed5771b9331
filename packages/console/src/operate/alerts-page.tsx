import { CircleAlert } from 'lucide';
import { useState } from 'preact/hooks';
import {
  type Alert,
  type AlertWithSecret,
  type Digest,
  type DigestWithSecret,
  formatNumber,
  getAll,
  hrefOf,
  type StoredDashboard,
  sendJson,
  type View,
} from '../base/base.ts';
import { DocumentTable, Icon, LoadState, Problem, Snippet, Time, useAction, useLoad } from '../parts/parts.ts';
import { AlertForm, DigestForm } from './alert-form.tsx';
import { conditionText, dashboardName, digestStatus, statusText, viewName } from './alert-texts.ts';
import { isFailing } from './managed-page.tsx';

const READ_EVERY_MS = 10_000;

interface Judged {
  readonly alerts: readonly Alert[];
  readonly digests: readonly Digest[];
}

/** What they can be about. */
interface Subjects {
  readonly views: readonly View[];
  readonly dashboards: readonly StoredDashboard[];
}

async function readJudged(signal: AbortSignal): Promise<Judged> {
  const [{ alerts }, { digests }] = await Promise.all([
    getAll<'alerts', Alert>('alerts', signal),
    getAll<'digests', Digest>('digests', signal),
  ]);
  return { alerts, digests };
}

async function readSubjects(signal: AbortSignal): Promise<Subjects> {
  const [{ views }, { dashboards }] = await Promise.all([
    getAll<'views', View>('views', signal),
    getAll<'dashboards', StoredDashboard>('dashboards', signal),
  ]);
  return { views: views.filter(({ report }) => report === 'series'), dashboards };
}

/**
 * The alerts and digests of the workspace, each with its state; new ones are created.
 *
 * @param params `view` or `dashboard`: what a form begins with
 */
export function AlertsPage({ params }: { readonly params: URLSearchParams }) {
  const { count, outcome, failure, act } = useAction();
  const [created, setCreated] = useState<AlertWithSecret | DigestWithSecret>();
  // These do not change by themselves, as states do.
  const subjects = useLoad('views and dashboards', readSubjects);
  const loaded = useLoad(`alerts ${count}`, readJudged, READ_EVERY_MS);
  const data = subjects.data && loaded.data && { ...subjects.data, ...loaded.data };
  const create = (list: 'alerts' | 'digests', given: object) =>
    act(async () => {
      const response = await sendJson(list, 'POST', given);
      setCreated(await response.json());
      return list === 'alerts' ? 'The alert is created.' : 'The digest is created.';
    });
  return (
    <>
      <h1>Alerts</h1>
      <LoadState loaded={loaded.data ? subjects : loaded} scope={loaded.data ? 'query' : 'webhooks'} />
      {failure && <Problem error={failure} />}
      <p role="status">{outcome}</p>
      {created && created.format === 'signed' && (
        <div class="notice">
          <Snippet title="The secret of its messages" text={created.secret} />
          <p>It is shown only now: the receiver checks signatures with it.</p>
        </div>
      )}
      {data && <Alerts {...data} view={params.get('view')} key={created?.id ?? ''} onCreate={create} />}
      {data && (
        <Digests {...data} dashboard={params.get('dashboard')} key={`${created?.id} digests`} onCreate={create} />
      )}
    </>
  );
}

interface Creating {
  readonly onCreate: (list: 'alerts' | 'digests', given: object) => Promise<void>;
}

function Alerts({ alerts, views, view, onCreate }: Judged & Subjects & Creating & { readonly view: string | null }) {
  return (
    <>
      {alerts.length === 0 && <p>There are no alerts.</p>}
      {alerts.length > 0 && (
        <DocumentTable
          label="Alerts"
          columns={['Name', 'Fires while', 'State', 'Value', 'Last message']}
          numbers="Value"
        >
          {alerts.map((alert) => (
            <tr key={alert.id}>
              <th scope="row">
                <a href={hrefOf(['alerts', alert.id])}>
                  <bdi>{alert.name}</bdi>
                </a>
              </th>
              <td class="text">
                <bdi>{viewName(alert, views)}</bdi>: {conditionText(alert)}
              </td>
              <td class="text">
                {(alert.reason !== null || isFailing(alert)) && <Icon of={CircleAlert} />}
                {statusText(alert)}
              </td>
              <td class="number">{alert.value === null ? '' : formatNumber(alert.value)}</td>
              <td>{alert.lastMessageAt !== null && <Time value={alert.lastMessageAt} />}</td>
            </tr>
          ))}
        </DocumentTable>
      )}
      {views.length === 0 ? (
        <p>
          An alert watches the number of a saved chart. <a href={hrefOf(['explore'])}>Explore</a> the events, and save
          one.
        </p>
      ) : (
        <details open={view !== null}>
          <summary>New alert</summary>
          <AlertForm
            {...{ views, label: 'New alert', action: 'Create an alert', ...(view !== null && { alert: { view } }) }}
            onGiven={(given) => void onCreate('alerts', given)}
          />
        </details>
      )}
    </>
  );
}

function Digests({
  digests,
  dashboards,
  dashboard,
  onCreate,
}: Judged & Subjects & Creating & { readonly dashboard: string | null }) {
  return (
    <>
      <h2>Daily digests</h2>
      {digests.length === 0 && <p>There are no digests. A digest sends the numbers of a dashboard once a day.</p>}
      {digests.length > 0 && (
        <DocumentTable label="Digests" columns={['Dashboard', 'Each day at', 'State', 'Last message']}>
          {digests.map((digest) => (
            <tr key={digest.id}>
              <th scope="row">
                <a href={hrefOf(['digests', digest.id])}>
                  <bdi>{dashboardName(digest, dashboards)}</bdi>
                </a>
              </th>
              <td>
                {digest.hour}:00, {digest.timeZone}
              </td>
              <td class="text">
                {(digest.reason !== null || isFailing(digest)) && <Icon of={CircleAlert} />}
                {digestStatus(digest)}
              </td>
              <td>{digest.lastMessageAt !== null && <Time value={digest.lastMessageAt} />}</td>
            </tr>
          ))}
        </DocumentTable>
      )}
      {dashboards.length > 0 && (
        <details open={dashboard !== null}>
          <summary>New digest</summary>
          <DigestForm
            {...{
              dashboards,
              label: 'New digest',
              action: 'Create a digest',
              ...(dashboard !== null && { digest: { dashboard } }),
            }}
            onGiven={(given) => void onCreate('digests', given)}
          />
        </details>
      )}
    </>
  );
}

import { useState } from 'preact/hooks';
import { type Dashboard, formatNumber, getAll, hrefOf, type StoredDashboard, sendJson } from '../base/base.ts';
import { LoadState, NameForm, Problem, Time, useLoad } from '../parts/parts.ts';

/** The dashboards of the workspace, and a form that makes one. */
export function DashboardsPage() {
  const [failure, setFailure] = useState<Error>();
  const loaded = useLoad('dashboards', (signal) => getAll<'dashboards', StoredDashboard>('dashboards', signal));
  const { data } = loaded;
  const create = async (name: string) => {
    try {
      const { id } = (await (await sendJson('dashboards', 'POST', { name })).json()) as Dashboard;
      location.hash = hrefOf(['dashboards', id]);
    } catch (caught) {
      setFailure(caught as Error);
    }
  };
  return (
    <>
      <h1>Dashboards</h1>
      <LoadState loaded={loaded} />
      {data?.dashboards.length === 0 && (
        <p>
          There are no dashboards. A dashboard shows <a href={hrefOf(['views'])}>saved views</a> on one page.
        </p>
      )}
      {data && data.dashboards.length > 0 && <DashboardTable dashboards={data.dashboards} />}
      {data && <NameForm label="Name of a new dashboard" action="Make it" onName={create} />}
      {failure && <Problem error={failure} />}
    </>
  );
}

function DashboardTable({ dashboards }: { readonly dashboards: readonly StoredDashboard[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="scroll" aria-label="Dashboards" tabIndex={0}>
      <table class="documents">
        <caption>Everybody of the workspace sees them</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" class="number">
              Views
            </th>
            <th scope="col">Changed</th>
          </tr>
        </thead>
        <tbody>
          {dashboards.map(({ id, name, tiles, changedAt }) => (
            <tr key={id}>
              <th scope="row">
                <a href={hrefOf(['dashboards', id])}>
                  <bdi>{name}</bdi>
                </a>
              </th>
              <td class="number">{formatNumber(tiles.length)}</td>
              <td>
                <Time value={changedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

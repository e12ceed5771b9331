import { useState } from 'preact/hooks';
import {
  ApiError,
  type Dashboard,
  getAll,
  getJson,
  hrefOf,
  type StoredDashboard,
  sendJson,
  type View,
} from '../base/base.ts';
import { NameForm, Problem, useLoad } from '../parts/parts.ts';
import { pageOfReport } from './view-address.ts';

interface SaveViewProps {
  readonly report: View['report'];
  readonly parameters: View['parameters'];
  /** The id of the view that the address names. */
  readonly id: string | null;
}

/** Saves what a page shows as a view of the workspace: as a new one, or as the one that the address names. */
export function SaveView({ report, parameters, id }: SaveViewProps) {
  const [isAsked, setIsAsked] = useState(false);
  const [dashboard, setDashboard] = useState('');
  const [saved, setSaved] = useState<Saved>();
  const [failure, setFailure] = useState<Error>();
  const content = { report, parameters };
  const save = async (name: string, send: () => Promise<StoredDashboard | undefined>) => {
    setFailure(undefined);
    setSaved(undefined);
    try {
      const on = await send();
      setSaved({ name, on, content: JSON.stringify(content) });
      setIsAsked(false);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  return (
    <div class="save-view">
      {id !== null && (
        <UpdateButton
          key={id}
          id={id}
          report={report}
          onUpdate={(name) =>
            save(name, async () => {
              await sendJson(`views/${encodeURIComponent(id)}`, 'PATCH', content);
              return undefined;
            })
          }
        />
      )}
      {isAsked ? (
        <NameForm
          label="Name of the view"
          action="Save the view"
          onName={(name) =>
            save(name, async () => {
              const view = (await (await sendJson('views', 'POST', { name, ...content })).json()) as View;
              return dashboard === '' ? undefined : await putOn(dashboard, view);
            })
          }
          onCancel={() => setIsAsked(false)}
        >
          <DashboardChoice value={dashboard} onChange={setDashboard} />
        </NameForm>
      ) : (
        <button type="button" onClick={() => setIsAsked(true)}>
          {id === null ? 'Save' : 'Save as a new view'}
        </button>
      )}
      <span role="status">
        {/* Another report is not saved yet. */}
        {saved?.content === JSON.stringify(content) && (
          <>
            Saved as “<bdi>{saved.name}</bdi>” in <a href={hrefOf(['views'])}>Views</a>
            {saved.on && (
              <>
                {' '}
                and on{' '}
                <a href={hrefOf(['dashboards', saved.on.id])}>
                  <bdi>{saved.on.name}</bdi>
                </a>
              </>
            )}
            .
          </>
        )}
      </span>
      {failure && <Problem error={failure} />}
    </div>
  );
}

interface Saved {
  readonly name: string;
  /** The dashboard that it is on, too. */
  readonly on: StoredDashboard | undefined;
  readonly content: string;
}

/** The choice of a dashboard that does not exist yet. */
const NEW = 'new';

/** Puts a view behind the tiles of a dashboard, or on a new one of the same name. */
async function putOn(dashboard: string, view: View): Promise<StoredDashboard> {
  const tile = { view: view.id, width: 1 };
  if (dashboard === NEW) {
    const response = await sendJson('dashboards', 'POST', { name: view.name, tiles: [tile] });
    return (await response.json()) as StoredDashboard;
  }
  const path = `dashboards/${encodeURIComponent(dashboard)}`;
  const { tiles } = await getJson<Dashboard>(path, new AbortController().signal);
  const before = tiles.map(({ view, note, width }) => (view === null ? { note, width } : { view, width }));
  return (await (await sendJson(path, 'PATCH', { tiles: [...before, tile] })).json()) as StoredDashboard;
}

interface DashboardChoiceProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The dashboards that a view may be put on, a new one among them. */
function DashboardChoice({ value, onChange }: DashboardChoiceProps) {
  const { data } = useLoad('dashboards', (signal) => getAll<'dashboards', StoredDashboard>('dashboards', signal));
  return (
    <label>
      on dashboard{' '}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">none</option>
        {data?.dashboards.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
        <option value={NEW}>a new one</option>
      </select>
    </label>
  );
}

interface UpdateButtonProps extends Pick<SaveViewProps, 'report'> {
  readonly id: string;
  readonly onUpdate: (name: string) => Promise<void>;
}

/**
 * A button that changes the view that the address names. Nothing is shown when that view was deleted meanwhile, or is of another page: a
 * statement does not become a chart, nor the other way round.
 */
function UpdateButton({ id, report, onUpdate }: UpdateButtonProps) {
  const { data, error } = useLoad(id, (signal) => getJson<View>(`views/${encodeURIComponent(id)}`, signal));
  if (error instanceof ApiError && error.status === 404) return null;
  if (error) return <Problem error={error} />;
  return (
    data &&
    pageOfReport(data.report) === pageOfReport(report) && (
      <button type="button" onClick={() => void onUpdate(data.name)}>
        Update “<bdi>{data.name}</bdi>”
      </button>
    )
  );
}

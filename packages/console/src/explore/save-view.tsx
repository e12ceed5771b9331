import { useState } from 'preact/hooks';
import { ApiError, calendar, getJson, hrefOf, sendJson, type View } from '../base/base.ts';
import { NameForm, Problem, useLoad } from '../parts/parts.ts';
import { parametersOf } from './view-address.ts';

interface SaveViewProps {
  readonly report: View['report'];
  /** The parameters of the page. */
  readonly params: URLSearchParams;
}

/** Saves what a page shows as a view of the workspace: as a new one, or as the one that the address names. */
export function SaveView({ report, params }: SaveViewProps) {
  const [isAsked, setIsAsked] = useState(false);
  const [saved, setSaved] = useState<{ readonly name: string; readonly content: string }>();
  const [failure, setFailure] = useState<Error>();
  const id = params.get('view');
  const content = { report, parameters: parametersOf(params, calendar.value) };
  const save = async (name: string, send: () => Promise<unknown>) => {
    setFailure(undefined);
    setSaved(undefined);
    try {
      await send();
      setSaved({ name, content: JSON.stringify(content) });
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
          onUpdate={(name) => save(name, () => sendJson(`views/${encodeURIComponent(id)}`, 'PATCH', content))}
        />
      )}
      {isAsked ? (
        <NameForm
          label="Name of the view"
          action="Save the view"
          onName={(name) => save(name, () => sendJson('views', 'POST', { name, ...content }))}
          onCancel={() => setIsAsked(false)}
        />
      ) : (
        <button type="button" onClick={() => setIsAsked(true)}>
          {id === null ? 'Save' : 'Save as a new view'}
        </button>
      )}
      <span role="status">
        {/* Another report is not saved yet. */}
        {saved?.content === JSON.stringify(content) && (
          <>
            Saved as “<bdi>{saved.name}</bdi>” in <a href={hrefOf(['views'])}>Views</a>.
          </>
        )}
      </span>
      {failure && <Problem error={failure} />}
    </div>
  );
}

interface UpdateButtonProps {
  readonly id: string;
  readonly onUpdate: (name: string) => Promise<void>;
}

/** A button that changes the view that the address names. Nothing is shown when that view was deleted meanwhile. */
function UpdateButton({ id, onUpdate }: UpdateButtonProps) {
  const { data, error } = useLoad(id, (signal) => getJson<View>(`views/${encodeURIComponent(id)}`, signal));
  if (error instanceof ApiError && error.status === 404) return null;
  if (error) return <Problem error={error} />;
  return (
    data && (
      <button type="button" onClick={() => void onUpdate(data.name)}>
        Update “<bdi>{data.name}</bdi>”
      </button>
    )
  );
}

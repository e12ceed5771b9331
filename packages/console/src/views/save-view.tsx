import { useState } from 'preact/hooks';
import { sendJson, type View } from '../api.ts';
import { calendar } from '../current-settings.ts';
import { Problem } from '../problem.tsx';
import { hrefOf } from '../route.ts';
import { NameForm } from './name-form.tsx';
import { parametersOf } from './view-address.ts';

interface SaveViewProps {
  readonly report: View['report'];
  /** Those of the page. */
  readonly params: URLSearchParams;
}

/** Saves what a page shows as a view of the workspace. */
export function SaveView({ report, params }: SaveViewProps) {
  const [isAsked, setIsAsked] = useState(false);
  const [saved, setSaved] = useState<string>();
  const [failure, setFailure] = useState<Error>();
  const save = async (name: string) => {
    setFailure(undefined);
    try {
      await sendJson('views', 'POST', { name, report, parameters: parametersOf(params, calendar.value) });
      setSaved(name);
      setIsAsked(false);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  return (
    <div class="save-view">
      {isAsked ? (
        <NameForm label="Name of the view" action="Save the view" onName={save} onCancel={() => setIsAsked(false)} />
      ) : (
        <button type="button" onClick={() => setIsAsked(true)}>
          Save
        </button>
      )}
      <span role="status">
        {saved !== undefined && (
          <>
            Saved as “<bdi>{saved}</bdi>” in <a href={hrefOf(['views'])}>Views</a>.
          </>
        )}
      </span>
      {failure && <Problem error={failure} />}
    </div>
  );
}

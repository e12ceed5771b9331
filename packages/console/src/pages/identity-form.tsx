import { useState } from 'preact/hooks';
import { getJson, type IdentitySettings, sendJson } from '../base/base.ts';
import { LoadState, Problem, useAction, useLoad } from '../parts/parts.ts';

/** What reads can see, as the choices say it. */
const CHOICES = {
  linked: 'are the users that they become',
  raw: 'are nobody',
} as const satisfies Record<IdentitySettings['identity'], string>;

/** Says whose the events of visitors are where nobody chooses, for everybody of the workspace. */
export function IdentityForm() {
  const { outcome, failure, act } = useAction();
  const loaded = useLoad('identity', (signal) => getJson<IdentitySettings>('identities/settings', signal));
  const [stored, setStored] = useState<IdentitySettings>();
  const data = stored ?? loaded.data;
  return (
    <section aria-labelledby="identity">
      <h2 id="identity">Visitors before they sign in</h2>
      <p class="muted" id="identity-hint">
        For everybody of the workspace, also in saved views and alerts, wherever nobody chooses something else; a key
        with the scope admin changes it.
      </p>
      <LoadState loaded={loaded} status={outcome} />
      {failure && <Problem error={failure} />}
      {data && (
        <form
          class="settings"
          aria-label="Visitors before they sign in"
          aria-describedby="identity-hint"
          onSubmit={(event) => {
            event.preventDefault();
            const identity = new FormData(event.currentTarget as HTMLFormElement).get('identity');
            void act(async () => {
              setStored(await save(String(identity)));
              return 'It is stored.';
            });
          }}
        >
          <label>
            Lists and reports: visitors
            <select name="identity" defaultValue={data.identity}>
              {Object.entries(CHOICES).map(([value, text]) => (
                <option key={value} value={value} selected={value === data.identity}>
                  {text}
                </option>
              ))}
            </select>
          </label>
          <div class="bar">
            <button type="submit" class="primary">
              Save it for everybody
            </button>
          </div>
        </form>
      )}
    </section>
  );
}

async function save(identity: string): Promise<IdentitySettings> {
  const response = await sendJson('identities/settings', 'PUT', { identity });
  return (await response.json()) as IdentitySettings;
}

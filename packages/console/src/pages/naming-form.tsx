import { getJson, type Naming, type NamingProperties, sendJson } from '../base/base.ts';
import { forgetNames, LoadState, Problem, useAction, useLoad } from '../parts/parts.ts';

/** What the lists are called, and what one of them is. */
const KINDS = { users: 'Users', organizations: 'Organizations' } as const;

/** Says which properties are the names and e-mail addresses of users and organizations, for everybody of the workspace. */
export function NamingForm() {
  const actions = useAction();
  const loaded = useLoad(`naming ${actions.count}`, (signal) => getJson<Naming>('names/properties', signal));
  const { data } = loaded;
  return (
    <section aria-labelledby="naming">
      <h2 id="naming">Names of people</h2>
      <p class="muted" id="naming-hint">
        For everybody of the workspace; a key with the scope admin changes it. The first property that somebody has
        counts; <code>first_name + last_name</code> puts two together.
      </p>
      <LoadState loaded={loaded} status={actions.outcome} />
      {actions.failure && <Problem error={actions.failure} />}
      {data && (
        <form
          key={actions.count}
          class="settings"
          aria-label="Names of people"
          aria-describedby="naming-hint"
          onSubmit={(event) => {
            event.preventDefault();
            const naming = namingOf(new FormData(event.currentTarget as HTMLFormElement));
            void actions.act(() => save(naming, 'It is stored.'));
          }}
        >
          {Object.entries(KINDS).map(([kind, title]) => (
            <KindFields key={kind} kind={kind} title={title} properties={data[kind as keyof Naming]} />
          ))}
          <div class="bar">
            <button type="submit" class="primary">
              Save the names
            </button>
            <button type="button" onClick={() => void actions.act(() => save({}, 'It is the usual again.'))}>
              Use the usual properties
            </button>
          </div>
        </form>
      )}
    </section>
  );
}

async function save(naming: object, outcome: string): Promise<string> {
  const response = await sendJson('names/properties', 'PUT', naming);
  // A body that nobody reads keeps its connection.
  await response.arrayBuffer();
  forgetNames();
  return outcome;
}

function namingOf(form: FormData): Naming {
  const ofKind = (kind: keyof Naming): NamingProperties => ({
    name: nameOfText(String(form.get(`${kind}.name`))),
    email: emailOfText(String(form.get(`${kind}.email`))),
  });
  return { users: ofKind('users'), organizations: ofKind('organizations') };
}

interface KindFieldsProps {
  readonly kind: string;
  readonly title: string;
  readonly properties: NamingProperties;
}

function KindFields({ kind, title, properties }: KindFieldsProps) {
  return (
    <>
      <label>
        {title}: name
        <input name={`${kind}.name`} defaultValue={textOfName(properties.name)} autocomplete="off" spellcheck={false} />
      </label>
      <label>
        {title}: e-mail address
        <input
          name={`${kind}.email`}
          defaultValue={properties.email.join(', ')}
          autocomplete="off"
          spellcheck={false}
        />
      </label>
    </>
  );
}

/** Returns lists of properties as a person writes them: `name, first_name + last_name`. */
function textOfName(name: NamingProperties['name']): string {
  return name.map((properties) => properties.join(' + ')).join(', ');
}

/** Returns the lists of a text that {@link textOfName} returns, or that a person wrote like it. */
function nameOfText(text: string): NamingProperties['name'] {
  const alternatives = itemsOf(text, ',').map((alternative) => itemsOf(alternative, '+'));
  return alternatives.filter(({ length }) => length > 0);
}

/** Returns the properties of a text with commas between them. */
function emailOfText(text: string): NamingProperties['email'] {
  return itemsOf(text, ',');
}

function itemsOf(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

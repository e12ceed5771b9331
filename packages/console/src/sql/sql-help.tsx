import { forgetStatements, hrefOf, statements } from '../base/base.ts';
import { EXAMPLES, propertySql, TABLES } from './sql-words.ts';

interface SqlHelpProps {
  /** The names of the workspace's properties. */
  readonly properties: readonly string[];
  /** Writes a text where the cursor is. */
  readonly onInsert: (text: string) => void;
}

/** Beside the box: what statements read, some to begin with, and those that ran in this browser. */
export function SqlHelp({ properties, onInsert }: SqlHelpProps) {
  return (
    <aside class="sql-help" aria-label="Columns, examples and history">
      {TABLES.map(({ name, columns }) => (
        <details key={name} open={name === 'events'}>
          <summary>{name}</summary>
          <ul>
            {columns.map(([column, type]) => (
              <Insertable key={column} label={column} about={type} text={column} onInsert={onInsert} />
            ))}
          </ul>
        </details>
      ))}
      {properties.length > 0 && (
        <details>
          <summary>Properties of events</summary>
          <ul>
            {properties.map((name) => (
              <Insertable key={name} label={name} about="" text={propertySql(name)} onInsert={onInsert} />
            ))}
          </ul>
        </details>
      )}
      <details open>
        <summary>Examples</summary>
        <ul>
          {EXAMPLES.map(([title, sql]) => (
            <li key={title}>
              <a href={sqlHref(sql)}>{title}</a>
            </li>
          ))}
        </ul>
      </details>
      {statements.value.length > 0 && (
        <details open>
          <summary>History of this browser</summary>
          <ul>
            {statements.value.map((sql) => (
              <li key={sql}>
                <a class="verbatim" href={sqlHref(sql)} title={sql}>
                  {sql.replaceAll(/\s+/g, ' ').slice(0, 80)}
                </a>
              </li>
            ))}
          </ul>
          <button type="button" onClick={forgetStatements}>
            Forget them
          </button>
        </details>
      )}
    </aside>
  );
}

function sqlHref(sql: string): string {
  return hrefOf(['sql'], new URLSearchParams({ sql }));
}

interface InsertableProps {
  readonly label: string;
  readonly about: string;
  readonly text: string;
  readonly onInsert: (text: string) => void;
}

/** A name that is written into the statement by a click. */
function Insertable({ label, about, text, onInsert }: InsertableProps) {
  return (
    <li>
      <button type="button" class="quiet" title={`Write ${text}`} onClick={() => onInsert(text)}>
        <bdi>{label}</bdi>
      </button>{' '}
      <span class="muted">{about}</span>
    </li>
  );
}

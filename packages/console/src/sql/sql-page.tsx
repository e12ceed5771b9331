import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type EventProperties, getJson, hrefOf, readStatements, rememberStatement, request } from '../base/base.ts';
import { SaveView } from '../explore/explore.ts';
import { LoadState, Problem, saveFile, useLoad, withoutFormulas } from '../parts/parts.ts';
import { type Rows, readRows } from './rows.ts';
import { chartOf } from './sql-chart.ts';
import { SqlEditor } from './sql-editor.tsx';
import { SqlHelp } from './sql-help.tsx';
import { ResultTable, SqlDrawing, summaryOf } from './sql-result.tsx';
import { EXAMPLES } from './sql-words.ts';

const [[, EXAMPLE] = ['', '']] = EXAMPLES;

/** So many properties are shown and completed, the most frequent. */
const PROPERTIES_MAX = 50;

/** What the path of a property of an event begins with. */
const PREFIX = 'properties.';

function runStatement(sql: string, format: 'ndjson' | 'csv', signal: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return request('queries', { method: 'POST', headers, body: JSON.stringify({ sql, format }), signal });
}

/**
 * A statement in SQL, and its result. The address holds the statement, but does not run it: a link is somebody else's, and a
 * statement costs the workspace a slot.
 */
export function SqlPage({ params }: { readonly params: URLSearchParams }) {
  const sql = params.get('sql') ?? '';
  const view = params.get('view');
  const [typed, setTyped] = useState('');
  const box = useRef<HTMLTextAreaElement>(null);
  // At once: a later effect would take away what somebody has typed by then.
  useLayoutEffect(() => setTyped(sql || EXAMPLE), [sql]);
  useLayoutEffect(() => void readStatements(), []);
  const [run, setRun] = useState({ count: 0, sql: '' });
  const properties = usePropertyNames();
  const runTyped = () => {
    rememberStatement(typed);
    setRun({ count: run.count + 1, sql: typed });
    if (typed !== sql) location.hash = hrefOf(['sql'], new URLSearchParams({ sql: typed, ...(view && { view }) }));
  };
  const insert = (text: string) => {
    if (!box.current) return;
    const { selectionStart, selectionEnd } = box.current;
    box.current.setRangeText(text, selectionStart, selectionEnd, 'end');
    box.current.focus();
    setTyped(box.current.value);
  };
  return (
    <>
      <h1>SQL</h1>
      <div class="sql">
        <div>
          <form
            class="filters"
            aria-label="Statement"
            onSubmit={(event) => {
              event.preventDefault();
              runTyped();
            }}
          >
            <SqlEditor value={typed} onInput={setTyped} properties={properties} box={box} />
            <div class="actions">
              <button type="submit" class="primary" aria-keyshortcuts="Control+Enter Meta+Enter">
                Run
              </button>
              <span class="muted">or press Ctrl and Enter</span>
            </div>
          </form>
          {run.sql !== '' && run.sql === sql && (
            <Result key={run.count} sql={sql} view={view} isTyped={typed === sql} />
          )}
        </div>
        <SqlHelp properties={properties} onInsert={insert} />
      </div>
    </>
  );
}

/** Returns the names of properties of events. Without them, nothing else is missing. */
function usePropertyNames(): readonly string[] {
  const { data } = useLoad('properties of events', (signal) =>
    getJson<EventProperties>(`events/properties?limit=${PROPERTIES_MAX}`, signal),
  );
  return (data?.results ?? []).flatMap(({ path }) => (path.startsWith(PREFIX) ? [path.slice(PREFIX.length)] : []));
}

interface ResultProps {
  readonly sql: string;
  /** The id of the view that the address names. */
  readonly view: string | null;
  /** Whether the box still has the statement that ran. */
  readonly isTyped: boolean;
}

function Result({ sql, view, isTyped }: ResultProps) {
  const loaded = useLoad<Rows>(sql, async (signal) => readRows(await runStatement(sql, 'ndjson', signal)));
  const { data } = loaded;
  const chart = data && chartOf(data);
  return (
    <>
      <LoadState loaded={loaded} status={data && summaryOf(data)} />
      {data && (
        <div class="bar">
          {isTyped && <SaveView report="sql" parameters={{ sql }} id={view} />}
          {data.rows.length > 0 && <Download sql={sql} />}
        </div>
      )}
      {chart && <SqlDrawing chart={chart} />}
      {data && data.rows.length > 0 && <ResultTable {...data} />}
    </>
  );
}

/** Runs the statement again, for all of its rows. */
function Download({ sql }: { readonly sql: string }) {
  const [isRunning, setIsRunning] = useState(false);
  const [error, setError] = useState<Error>();
  const save = async () => {
    setIsRunning(true);
    setError(undefined);
    try {
      const response = await runStatement(sql, 'csv', new AbortController().signal);
      saveFile('result.csv', new Blob([withoutFormulas(await response.text())]));
    } catch (caught) {
      setError(caught as Error);
    }
    setIsRunning(false);
  };
  return (
    <>
      <button type="button" disabled={isRunning} onClick={() => void save()}>
        {isRunning ? 'Downloading …' : 'Download as CSV'}
      </button>
      {error && <Problem error={error} />}
    </>
  );
}

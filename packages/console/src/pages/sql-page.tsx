import { useLayoutEffect, useState } from 'preact/hooks';
import { formatCount, formatExact, hrefOf, isNumber, request } from '../base/base.ts';
import { beginningOf, LoadState, Problem, Scrollable, saveFile, useLoad, withoutFormulas } from '../parts/parts.ts';
import { type Rows, readRows } from './rows.ts';

const EXAMPLE = 'SELECT event, count() AS events\nFROM events\nGROUP BY event\nORDER BY events DESC';

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
  const [typed, setTyped] = useState('');
  // At once: a later effect would take away what somebody has typed by then.
  useLayoutEffect(() => setTyped(sql || EXAMPLE), [sql]);
  const [run, setRun] = useState({ count: 0, sql: '' });
  const runTyped = () => {
    setRun({ count: run.count + 1, sql: typed });
    if (typed !== sql) location.hash = hrefOf(['sql'], new URLSearchParams({ sql: typed }));
  };
  return (
    <>
      <h1>SQL</h1>
      <form
        class="filters"
        aria-label="Statement"
        onSubmit={(event) => {
          event.preventDefault();
          runTyped();
        }}
      >
        <label class="statement">
          One SELECT over events, users and organizations
          <textarea
            required
            rows={Math.min(20, Math.max(6, typed.split('\n').length + 1))}
            spellcheck={false}
            value={typed}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
            }}
          />
        </label>
        <div class="actions">
          <button type="submit" class="primary" aria-keyshortcuts="Control+Enter Meta+Enter">
            Run
          </button>
          <span class="muted">or press Ctrl and Enter</span>
        </div>
      </form>
      {run.sql !== '' && run.sql === sql && <Result key={run.count} sql={sql} />}
    </>
  );
}

function Result({ sql }: { readonly sql: string }) {
  const loaded = useLoad<Rows>(sql, async (signal) => readRows(await runStatement(sql, 'ndjson', signal)));
  const { data } = loaded;
  return (
    <>
      <LoadState loaded={loaded} status={data && summaryOf(data)} />
      {data && data.rows.length > 0 && <Download sql={sql} />}
      {data && data.rows.length > 0 && <ResultTable {...data} />}
    </>
  );
}

function summaryOf({ rows, isWhole }: Rows): string {
  const count = formatCount(rows.length, 'row');
  return isWhole ? `${count}.` : `The first ${count}.`;
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

function ResultTable({ columns, rows }: Rows) {
  return (
    <Scrollable label="Result">
      <table class="numbers result">
        <caption>Result</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col" class={classOf(rows[0]?.[column])}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column} class={classOf(row[column])}>
                  {textOf(row[column])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function classOf(value: unknown): string | undefined {
  return isNumber(value) ? 'number' : undefined;
}

function textOf(value: unknown): string {
  if (isNumber(value)) return formatExact(JSON.stringify(value));
  return beginningOf(typeof value === 'string' ? value : JSON.stringify(value));
}
